"""Names that a new block cannot have. What it writes is tested in tests/examples/test_blocks_page.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from server import cli


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("agent", "There is a block type or a module of Python called agent."),
        ("json", "There is a block type or a module of Python called json."),
        ("Shout", "cannot be the name of a block"),
        ("class", "cannot be the name of a block"),
    ],
)
def test_names_that_mean_something_else(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(cli.weft, ["new-block", name])
    assert refused.exit_code != 0 and said in refused.stderr
    assert list(tmp_path.iterdir()) == []
