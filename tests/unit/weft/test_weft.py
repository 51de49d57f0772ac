"""The public names of `import weft`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import weft
from tests.support.weft_names import OUT, stub

NAMES = sorted(vars(weft)["_NAMES"])


def test_type_checkers_see_what_programs_get() -> None:
    assert OUT.read_text(encoding="utf-8") == stub(), "run `python -m tests.support.weft_names`"
    assert weft.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
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
