"""`weft new-block`: a package with your own block type, made from the one in the examples."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import click

from server.cli.common import Refused
from server.shipped import examples_folder

MODEL: Final = "word_count"
_FILES: Final = (
    "README.md",
    "pyproject.toml",
    "tests/test_word_count.py",
    "word_count/__init__.py",
    "word_count/block.py",
)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")


@click.command("new-block")
@click.argument("name")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to write it. Default: ./NAME.")
def new_block(name: str, folder: Path | None) -> None:
    """Write a package with a block type NAME, and its tests.

    It is complete: `pip install -e FOLDER` makes the block available to a server of this environment, and
    `pytest FOLDER` passes. Files that are there are never overwritten.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in ("tests", "weft"):
        raise Refused(
            f"{name!r} cannot be the name of a block: use 2 to 40 small letters, digits and _, as in fetch_price."
        )
    if name in sys.stdlib_module_names or name in {point.name for point in entry_points(group="weft.blocks")}:
        raise Refused(f"There is a block type or a module of Python called {name}.", "Choose another name.")
    target = folder or Path(name)
    if target.exists() and any(target.iterdir()):
        raise Refused(f"{target} is not empty. Choose another folder with --folder.")
    for source in _FILES:
        text = (examples_folder() / "block-package" / source).read_text(encoding="utf-8")
        path = target / _named(source, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_named(text, name))
        click.echo(path)
    click.echo(f"Next: pip install -e {target}, then edit {target / name / 'block.py'}", err=True)


def _named(text: str, name: str) -> str:
    return text.replace(MODEL, name).replace(MODEL.replace("_", "-"), name.replace("_", "-"))


COMMANDS = (new_block,)
