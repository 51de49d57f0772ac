"""`weft python build`, which makes what function blocks in Python run in."""

import pytest
from click.testing import CliRunner

from executor.blocks.sandbox.python import component
from executor.kernel.process.extras import install
from server import cli
from tests.support.python_guest import built_python

pytestmark = pytest.mark.xdist_group("build of the Python of functions")  # one at a time: the others are refused


def test_what_is_there_is_not_built_again() -> None:
    built_python()
    ran = CliRunner().invoke(cli.weft, ["python", "build"])
    assert ran.exit_code == 0
    assert "is there" in ran.output


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    built_python()
    monkeypatch.setattr(component, "find_spec", lambda name: None)
    ran = CliRunner().invoke(cli.weft, ["python", "build", "--force"])
    assert ran.exit_code != 0
    assert install("python") in ran.output


def test_a_build_that_fails_shows_why(monkeypatch: pytest.MonkeyPatch) -> None:
    built_python()
    monkeypatch.setattr(component, "_MODULE", "no_such_program")
    ran = CliRunner().invoke(cli.weft, ["python", "build", "--force"])
    assert ran.exit_code != 0
    assert "componentize-py failed" in ran.output
