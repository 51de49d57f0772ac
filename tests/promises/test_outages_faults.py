"""Each row of the table "what happens when": within what is promised, with room for a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from tests.promises.faults import BEGINS, ENDS, FAULTS, PAGE, Fault, measure
from tests.support.small_disk import NoDisk

LONGEST_S = 12.0  # five are promised
BACK_S = 20.0  # one or two, and the start of processes


@pytest.mark.proof
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.id for fault in FAULTS])
async def test_clients_are_answered_in_time_and_everything_works_again(fault: Fault, tmp_path: Path) -> None:
    try:
        found = await measure(fault, tmp_path)
    except NoDisk as error:
        pytest.skip(str(error))
    assert set(found.errors) <= {"503", "507", "no connection"}, found
    assert found.longest_s < LONGEST_S + (fault.lasts_s if fault.waits else 0), found
    assert found.back_s < BACK_S, found


def test_the_page_has_a_row_for_each() -> None:
    shown = PAGE.read_text(encoding="utf-8").split(BEGINS)[1].split(ENDS)[0]
    rows = [line for line in shown.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(FAULTS)
    for row, fault in zip(rows, FAULTS, strict=True):
        assert row.startswith(f"| {fault.name}") and f"| {fault.kind} |" in row, row
