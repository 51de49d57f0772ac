"""Enters the durable functions of a file with journals of open runs, and prints as JSON where they do something else:
`python -m server.dev.fit FILE < JOURNALS`. The clock is another, so a function that reads it is found, too."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from compiler.tracing.durable import DurableFunction, durables_of
from executor.blocks.types.python import load_module
from executor.errors import WeftError
from executor.open.testing.elsewhere import move_dates, move_time
from executor.service.replay.checking import Checked, check
from executor.service.replay.journals import Journal, read
from server.dev.journals import Fit


def main() -> int:
    [file] = sys.argv[1:]
    answer, sys.stdout = sys.stdout, sys.stderr
    move_time()
    durables = {one.name: one for one in durables_of(vars(load_module(file)).values()).values()}
    move_dates(durables.values())
    journals = read(sys.stdin.read())
    found = asyncio.run(_all(durables, journals))
    answer.write(msgspec.json.encode(found).decode())
    answer.flush()
    return 0


async def _all(durables: dict[str, DurableFunction[..., object]], journals: Sequence[Journal]) -> list[Fit]:
    found = [(one, await checked(durables.get(one.workflow), one)) for one in journals]
    return [Fit(one.run, one.workflow, it.parts) for one, it in found]


async def checked(durable: DurableFunction[..., object] | None, journal: Journal) -> Checked:
    """Check a journal whose function may be missing, or that may be of something else."""
    if durable is None:
        return Checked(journal.run, journal.status, "its function is not in the file any more")
    try:
        return await check(durable, journal)
    except WeftError as error:
        return Checked(journal.run, journal.status, error.message)


if __name__ == "__main__":
    sys.exit(main())
