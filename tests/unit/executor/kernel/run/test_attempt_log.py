"""Live text and `ctx.log` are stored, bounded, and shown after the run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler.catalog import BlockSpec
from compiler.diagnostics import CompileError
from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.run.attempt_log import LINES_MAX, LOG_BYTES_MAX, TEXT_BYTES_MAX, AttemptLog
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.values.redact import Redactor
from executor.open.engine import Engine
from executor.service.upkeep.invariants import check
from tests.support.python_guest import built_python
from tests.support.runs import engine_on

Json = dict[str, Any]


def one(block: Json) -> Json:
    return {
        "format": "weft/1",
        "name": "one",
        "blocks": {"start": {"type": "start"}, "it": block},
        "edges": [{"source": "start", "target": "it"}],
    }


async def logged(engine: Engine, run: str) -> list[tuple[str, str]]:
    records, _ = await engine.store.find_events(run, EventFilter(types=("node.log",)))
    found = [orjson.loads(record.data or b"") for record in records]
    return [(each.get("stream", "log"), each["message"]) for each in found]


async def types(engine: Engine, run: str) -> list[str]:
    records, _ = await engine.store.find_events(run, EventFilter(node="it"))
    return [record.type for record in records]


class Block:
    def __init__(self, work: Callable[[StepContext], Any]) -> None:
        self.spec = BlockSpec("it", "It", "", "action")
        self._work = work

    async def run(self, ctx: StepContext) -> Done:
        return Done(await self._work(ctx))


async def run_one(tmp_path: Path, work: Callable[[StepContext], Any], **more: Any) -> tuple[list[tuple[str, str]], Any]:
    async with engine_on(tmp_path / "weft.db", Block(work)) as engine:
        view = await engine.run(one({"type": "it", **more}), timeout_s=60)
        assert (await types(engine, view.id))[-1] in ("node.succeeded", "node.failed")
        return await logged(engine, view.id), view


async def test_lines_and_live_text_are_in_the_journal_before_the_end(tmp_path: Path) -> None:
    async def work(ctx: StepContext) -> None:
        ctx.log("rows", 3, {"a": 1})
        ctx.emit("Hel")
        ctx.emit("lo")
        ctx.log("two\nlines")

    found, _ = await run_one(tmp_path, work)
    logs = "\n".join(message for stream, message in found if stream == "log")
    assert logs == "rows 3 {'a': 1}\ntwo\nlines"
    assert found[-1] == ("text", "Hello")


async def test_a_line_is_on_record_while_the_block_still_runs(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def work(ctx: StepContext) -> None:
        ctx.log("begun")
        await go.wait()

    async with engine_on(tmp_path / "weft.db", Block(work)) as engine:
        run = (await engine.submit(one({"type": "it"}))).run
        async with asyncio.timeout(60):
            async for records in engine.follow(run):
                if any(record.type == "node.log" for record in records):
                    break
        assert await logged(engine, run) == [("log", "begun")]
        assert (await engine.runs.view(run)).status == "running"
        go.set()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_a_block_that_fails_or_pauses_keeps_what_it_said(tmp_path: Path) -> None:
    async def work(ctx: StepContext) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        raise BlockError("no", retryable=True)

    found, view = await run_one(tmp_path, work, policy={"retry": {"max_attempts": 2, "backoff_s": 0}})
    assert found == [("log", "attempt 1"), ("log", "attempt 2")]
    assert view.status == "failed"


async def test_what_code_prints_is_logged(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        code = "console.log('first', 1); console.log('second'); return 5"
        view = await engine.run(one({"type": "function", "params": {"code": code}}), timeout_s=60)
        assert await logged(engine, view.id) == [("log", "first 1\nsecond")]
        code = "console.log('so far'); throw new Error('boom')"
        view = await engine.run(one({"type": "function", "params": {"code": code}}), timeout_s=60)
        assert view.status == "failed"
        assert await logged(engine, view.id) == [("log", "so far")]


async def test_python_reads_references_and_its_log_has_no_secrets(tmp_path: Path) -> None:
    built_python()
    code = "print('for <start.name>:', <start.n> + 1)\nprint(${KEY})\nreturn ['{<start.name>}', <start.all>, ${KEY}]"
    document = one({"type": "function", "params": {"code": code, "language": "python"}})
    async with engine_on(tmp_path / "weft.db", env={"KEY": "s3cret-value"}) as engine:
        input = {"name": "O'Hara \"}{", "n": 1, "all": {"a": [True, None]}}
        view = await engine.run(document, input, timeout_s=60)
        assert view.status == "succeeded", view.error
        assert await logged(engine, view.id) == [("log", "for O'Hara \"}{: 2\n[redacted]")]
        assert view.output["result"] == ["{O'Hara \"}{}", {"a": [True, None]}, "[redacted]"]
        document["blocks"]["it"]["params"]["code"] = "return <start.n> +"
        with pytest.raises(CompileError) as caught:
            await engine.run(document, timeout_s=60)
        assert "The code is not valid Python: SyntaxError: invalid syntax (line 1)" in str(caught.value.diagnostics)


async def test_a_python_function_logs_from_its_thread(tmp_path: Path) -> None:
    def count(n: int, ctx: StepContext) -> int:
        assert threading.current_thread() is not threading.main_thread()
        for i in range(n):
            ctx.log("row", i)
            ctx.emit(f"{i} ")
        return n

    async with engine_on(tmp_path / "weft.db", Python({"count": count})) as engine:
        document = one({"type": "python", "params": {"function": "count", "arguments": {"n": 3}}})
        view = await engine.run(document, timeout_s=60)
        assert view.status == "succeeded", view.error
        found = await logged(engine, view.id)
    assert "\n".join(message for stream, message in found if stream == "log") == "row 0\nrow 1\nrow 2"
    assert found[-1] == ("text", "0 1 2 ")


async def test_the_log_of_an_attempt_is_bounded(tmp_path: Path) -> None:
    async def many(ctx: StepContext) -> None:
        for i in range(LINES_MAX + 7):
            ctx.log(f"line {i}")

    found, _ = await run_one(tmp_path, many)
    lines = "\n".join(message for _, message in found).split("\n")
    assert len(lines) == LINES_MAX + 1
    assert lines[LINES_MAX - 1] == f"line {LINES_MAX - 1}"
    assert lines[-1].startswith("(7 more lines omitted")


async def test_long_lines_and_long_texts_are_cut(tmp_path: Path) -> None:
    async def long(ctx: StepContext) -> None:
        ctx.log("é" * LOG_BYTES_MAX)
        ctx.log("past it")
        for _ in range(3):
            ctx.emit("ab" * TEXT_BYTES_MAX)
        ctx.emit("the end")

    found, _ = await run_one(tmp_path, long)
    logs = "\n".join(message for stream, message in found if stream == "log")
    line, said = logs.split("\n")
    assert len(line.encode()) <= LOG_BYTES_MAX + 3 and line.endswith("é…")
    assert said.startswith("(1 more line omitted")
    stream, text = found[-1]
    assert (stream, text[0], text[-7:]) == ("text", "…", "the end")
    assert len(text.encode()) <= TEXT_BYTES_MAX + 3


async def test_secrets_are_taken_out() -> None:
    kept: list[tuple[str, str]] = []
    live: list[str] = []
    loop = asyncio.get_running_loop()
    redactor = Redactor({"KEY": "s3cret-value"})
    said = AttemptLog(redactor, lambda text, stream: kept.append((stream, text)), live.append, loop)
    said.log("the key is", "s3cret-value")
    for piece in ("it is s3cr", "et-va", "lue, yes"):
        said.emit(piece)
    said.end()
    said.log("late")
    said.emit("late")
    assert "s3cret" not in str(kept) + str(live)
    assert kept == [("log", "the key is [redacted]"), ("text", "it is [redacted], yes")]
    assert "".join(live) == "it is [redacted], yes"


async def test_what_surrogates_and_nothing_leave() -> None:
    kept: list[tuple[str, str]] = []
    loop = asyncio.get_running_loop()
    said = AttemptLog(Redactor({}), lambda text, stream: kept.append((stream, text)), lambda text: None, loop)
    said.log("caf\udce9")
    said.log()
    said.end()
    assert "\n".join(text for _, text in kept) == "caf\\udce9\n"


async def test_an_attempt_that_says_nothing_leaves_no_event(tmp_path: Path) -> None:
    async def quiet(ctx: StepContext) -> None:
        await asyncio.sleep(0)

    async with engine_on(tmp_path / "weft.db", Block(quiet)) as engine:
        view = await engine.run(one({"type": "it"}), timeout_s=60)
        assert await types(engine, view.id) == ["node.started", "node.succeeded"]


@pytest.mark.parametrize("seq", [None, 3])
async def test_the_run_as_it_stood_and_its_journal_take_logs(tmp_path: Path, seq: int | None) -> None:
    """Everything that folds a journal knows the event: state, why, diff, fork, doctor."""

    async def work(ctx: StepContext) -> int:
        ctx.log("hello")
        return 5

    async with engine_on(tmp_path / "weft.db", Block(work)) as engine:
        runs = [(await engine.run(one({"type": "it"}), timeout_s=60)).id for _ in range(2)]
        state = await engine.history.state(runs[0], seq)
        assert state.run == runs[0]
        assert (await engine.history.diff(*runs)).same
        assert (await engine.history.why(runs[0], "it"))[0].state == "succeeded"
        seqs = [record.seq for record in await engine.store.read_events(runs[0]) if record.type == "node.log"]
        forked = await engine.lifecycle.fork(runs[0], seqs[0])
        assert (await engine.wait_finished(forked.run, 60)).status == "succeeded"
    with closing(open_reading(tmp_path / "weft.db")) as db:
        assert list(check(db)) == []
