"""Durable functions against journals: one that was stored, or that of a run made for it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final

import msgspec
import orjson

from compiler.tracing.durable import BODY, DurableFunction
from executor.kernel.journal.reader import Records, output_of
from executor.open.engine import Engine
from executor.open.testing.engines import engine
from executor.open.testing.play import Answers, finish
from executor.service.replay.checking import Checked, check
from executor.service.replay.journals import Journal, load, read, write

SEEDS: Final = (1, 2)  # of the hashes of texts, on which the order of sets depends


def replay(durable: DurableFunction[..., Any], journals: str | Path) -> list[Checked]:
    """Enter the function with what recorded runs have (a file of `weft journals export`, or the text of `weft test
    RUN`), and return what it came to: it makes the same calls, gets their recorded results, and nothing is executed.
    Raises AssertionError: it makes other calls, or comes to another end."""
    is_text = isinstance(journals, str) and ("\n" in journals or not Path(journals).is_file())
    found = read(str(journals)) if is_text else load(Path(journals))

    async def all_of() -> list[Checked]:
        return [await check(durable, journal) for journal in found]

    done = _run(all_of())
    if parted := [one for one in done if one.parts]:
        raise AssertionError("\n".join(f"run {one.run}: {one.parts}" for one in parted))
    return done


async def replays(durable: DurableFunction[..., Any], input: Any = None, *, answers: Answers | None = None) -> None:
    """Run the function, and enter it again with its journal in other processes, with another clock, other random
    numbers and another order of sets: it must make the same calls. `answers`: see weft.testing.finish. Raises
    AssertionError, which says which call differs."""
    async with engine(workflows=[durable]) as opened:
        run = (await opened.submit(durable, input=input)).run
        await finish(opened, run, answers)
        journal = await journal_of(opened, run)
    for parts in await asyncio.gather(*(_elsewhere(durable, journal, seed) for seed in SEEDS)):
        if parts:
            raise AssertionError(f"{parts}\nwith another clock, other random numbers and another order of sets")


async def journal_of(opened: Engine, run: str) -> Journal:
    """Return the journal of a run of a durable function."""
    view = await opened.runs.view(run)
    node = await opened.runs.node(run, BODY)
    records = [
        msgspec.structs.replace(record, output=await output_of(opened.store, record))
        async for record in Records(opened.store, run)
    ]
    arguments = orjson.loads(bytes(node.input or b"{}")).get("arguments") or {}
    return Journal(run, view.workflow, view.status, arguments, tuple(records))


async def _elsewhere(durable: DurableFunction[..., Any], journal: Journal, seed: int) -> str:
    """Return where another process parts from the journal, or ""."""
    asked = {
        "path": sys.path,
        "module": durable.function.__module__,
        "file": durable.function.__code__.co_filename,
        "name": durable.called,
        "journal": write([journal]),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "executor.open.testing.elsewhere"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
    )
    output, errors = await process.communicate(orjson.dumps(asked))
    if process.returncode != 0:
        raise AssertionError(f"the function could not be entered in another process:\n{errors.decode()}")
    parts: str = orjson.loads(output)["parts"]
    return parts


def _run(made: Coroutine[Any, Any, list[Checked]]) -> list[Checked]:
    """Wait for it, also in a test that has an event loop."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, made).result()
