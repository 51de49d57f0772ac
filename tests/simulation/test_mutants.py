"""The text of each planted bug is in the code, once: a list that has not followed the code plants nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation import direct, mutants
from tests.simulation.world import mutants as world

EXECUTOR = direct.ROOT / "executor"
LISTS: dict[Path, Callable[[mutants.Mutant], Path]] = {
    mutants.LIST: lambda mutant: EXECUTOR / "kernel" / "core" / mutant.file,
    world.LIST: lambda mutant: EXECUTOR / mutant.file,
    direct.LIST: lambda mutant: direct.ROOT / direct.file_of(mutant),
}


@pytest.mark.parametrize("list", LISTS, ids=lambda path: str(path.relative_to(direct.ROOT)))
def test_each_planted_bug_is_of_this_code(list: Path) -> None:
    planted = mutants.read(list.read_text())
    assert len({mutant.what for mutant in planted}) == len(planted) > 10
    # One in the core may be in several places: it is planted in all of them.
    times = {mutant.what: LISTS[list](mutant).read_text().count(mutant.right) for mutant in planted}
    at_most = 99 if list == mutants.LIST else 1
    assert not {what: count for what, count in times.items() if not 1 <= count <= at_most}


def test_those_for_direct_tests_name_them() -> None:
    for mutant in mutants.read(direct.LIST.read_text()):
        assert mutant.tests
        assert all((direct.ROOT / "tests" / each).exists() for each in mutant.tests), mutant
