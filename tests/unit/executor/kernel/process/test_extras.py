"""Commands that install an extra."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
from packaging.requirements import Requirement

from executor.kernel.process.extras import install
from tests.support.server import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_names_the_packages_of_the_extra(extra: str) -> None:
    program, verb, *packages = shlex.split(install(extra))
    assert (program, verb) == ("pip", "install")
    asked = {need.partition(";")[0] for need in EXTRAS[extra]}  # a system that lacks one has no need of the command
    assert {Requirement(package) for package in packages} == {Requirement(package) for package in asked}


def test_an_extra_that_is_not_there_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="has no extra 'llms'"):
        install("llms")


def test_all_commands_are_made_here() -> None:
    """`pip install 'weft[NAME]'` would ask an index that does not have weft. Each extra in the code is there."""
    named = set()
    for path in (
        path for folder in ("compiler", "executor", "server", "weft") for path in ROOT.glob(f"{folder}/**/*.py")
    ):
        text = path.read_text()
        assert "weft[" not in text, path
        named |= set(re.findall(r"\binstall\([\"'](\w+)[\"']\)", text))
    assert named == {
        "js",
        "secrets",
        "sql",
        "llm",
        "mcp",
        "postgres",
        "mysql",
        "redis",
        "sftp",
        "python",
        "oidc",
        "otel",
        "kubernetes",
        "dask",
        "pdf",
        "html",
        "excel",
    }


def test_the_extra_of_servers_has_all_that_the_smaller_ones_have() -> None:
    assert {need for extra in ("js", "secrets", "sql") for need in EXTRAS[extra]} <= set(EXTRAS["server"])
