"""The public names of `import weft`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import weft


def _typed() -> dict[str, tuple[str, str]]:
    """What type checkers see: public name -> (module, name there)."""
    (block,) = [
        node for node in ast.parse(Path(weft.__file__).read_text()).body if isinstance(node, ast.If)
    ]  # if TYPE_CHECKING
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_what_programs_get() -> None:
    names = {}
    for name, place in weft._NAMES.items():
        module, _, inside = place.partition(":")
        names[name] = (module, inside or name)
    assert names == _typed()
    assert sorted(weft._NAMES) == sorted(weft.__all__)


@pytest.mark.parametrize("name", sorted(weft._NAMES))
def test_each_name_is_there(name: str) -> None:
    assert getattr(weft, name) is not None
    assert name in dir(weft)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'weft' has no attribute 'Nope'"):
        _ = weft.Nope  # type: ignore[attr-defined, unused-ignore]


def test_the_import_alone_loads_no_other_package_of_weft() -> None:
    source = (
        "import sys, weft; print([m for m in sys.modules if m.split('.')[0] in ('compiler', 'executor', 'server')])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
