"""A process that ends at one of its commits, without a process: quick enough to look at what is on disk at each."""

from __future__ import annotations

import asyncio

from executor.kernel.store.run_rows import Append, Appended
from executor.open.engine import Engine


def ends_at(engine: Engine, commit: int, after: bool) -> asyncio.Event:
    """The process ends at this append, before or after it: nothing more of it is written. The event is set then."""
    store, ended, commits = engine.store, asyncio.Event(), 0
    append = store.append

    async def appending(change: Append) -> Appended:
        nonlocal commits
        commits += 1
        if commits >= commit:
            if after and commits == commit:
                await append(change)
            ended.set()
            await asyncio.Event().wait()
        return await append(change)

    store.append = appending
    return ended
