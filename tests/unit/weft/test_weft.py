"""The public names of `import weft`."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import weft
from server import client
from tests.support.weft_names import OUT, stub
from weft import answers, testing

NAMES = sorted(vars(weft)["_NAMES"])


def test_type_checkers_see_what_programs_get() -> None:
    assert OUT.read_text(encoding="utf-8") == stub(), "run `python -m tests.support.weft_names`"
    assert weft.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_there(name: str) -> None:
    assert getattr(weft, name) is not None
    assert name in dir(weft)


@pytest.mark.parametrize("module", [weft, weft.draw, testing, answers, client], ids=lambda module: str(module.__name__))
def test_no_two_names_differ_by_capitals_alone(module: ModuleType) -> None:
    """A reader, and a search without case, could take one for the other."""
    alike: dict[str, list[str]] = {}
    for name in getattr(module, "__all__", dir(module)):
        if not name.startswith("_"):
            alike.setdefault(name.replace("_", "").lower(), []).append(name)
    assert len(alike) > 5
    assert [names for names in alike.values() if len(names) > 1] == []


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'weft' has no attribute 'Nope'"):
        _ = weft.Nope  # type: ignore[attr-defined, unused-ignore]


def test_the_import_alone_loads_no_other_package_of_weft() -> None:
    source = (
        "import sys, weft; print([m for m in sys.modules if m.split('.')[0] in ('compiler', 'executor', 'server')])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
