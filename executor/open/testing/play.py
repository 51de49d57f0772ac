"""Plays a run to its end: time passes when nothing else happens, and questions are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from compiler.diagnostics import Diagnostic
from compiler.tracing.asks import SIGNAL as UPDATE
from executor.kernel.handler.base import Block
from executor.kernel.journal.codec import data_of
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from executor.open.testing.engines import ManualClock, engine, settled
from executor.open.testing.scripted_http import ScriptedHttp
from executor.service.views import RunView, WaitView

STUCK_S: Final = 10.0  # without any progress
IDLE_LOOKS: Final = 4  # that find a run in memory idle, such as one that waits to try again
LOOK_AGAIN_S: Final = 0.02
_TURNS_MAX: Final = 10_000

Answers = Mapping[str, Any]


class Cancel:
    """The answer to a wait that cancels the run. There is one, CANCEL."""


CANCEL: Final = Cancel()
BeforeMove = Callable[[int], None]


class Stuck(AssertionError):
    """The run waits for something that the test does not bring."""


async def finish(
    engine: Engine, run: str, answers: Answers | None = None, *, before_move: BeforeMove | None = None
) -> RunView:
    """Play the run to its end and return it. Its clock, a ManualClock, is moved to the next due time. `answers` are the
    answers to waits, by the name of the signal, the title of the question, or the id of the block that waits:

    approval          the action, `"approve"`, or `{"action": "approve", "fields": {...}}`
    form, question    the fields
    signal, callback  the payload, any JSON value
    update            its value, by the name of the update
    attention         `retry`, `done` or `fail`; `retry` without an answer
    any               `weft.testing.CANCEL`: the run is cancelled while it waits there, also for a time or a child run

    A function gets the WaitView and returns one of these. A wait without an answer stays open while there is something
    to wait for beside it. Raises Stuck."""
    clock = engine.parts.clock
    if not isinstance(clock, ManualClock):
        raise TypeError("finish moves a ManualClock: open the engine with weft.testing.engine")
    loop = asyncio.get_running_loop()
    commits, since_s, idle = -1, loop.time(), 0
    answered: set[tuple[str, str]] = set()
    for _ in range(_TURNS_MAX):
        await settled(engine, within_s=1.0)
        view = await engine.runs.view(run)
        if view.status in TERMINAL:
            return view
        if engine.figures.commits != commits:  # of this run, or of one below it
            commits, since_s, idle = engine.figures.commits, loop.time(), 0
        if engine.figures.attempts:
            since_s, idle = loop.time(), 0  # a handler is at work: it has a time limit of its own
            continue
        if await _answer(engine, run, answers or {}, answered):
            continue
        if (view.status != "waiting" or view.children_active) and idle < IDLE_LOOKS:
            idle += 1  # it may be about to do something: time would pass in the middle of it
            await asyncio.sleep(LOOK_AGAIN_S)
            continue
        due_ms = await _next_due_ms(engine)
        if due_ms is not None:
            if before_move is not None:
                before_move(due_ms)
            clock.set(max(due_ms, clock.now_ms()))
            idle = 0
        elif loop.time() - since_s > STUCK_S:
            open = [f"{wait.key} ({wait.kind})" for wait in view.waits] or ["nothing that can be seen"]
            raise Stuck(f"the run waits for {', '.join(open)}, and nothing is due")
    raise Stuck("the run does not end")


async def _next_due_ms(engine: Engine) -> int | None:
    """Return the next time for which this process waits. The store only has the end of the lease of a run in memory."""
    found = [engine.parts.timers.next_due_ms, None if engine.figures.runs else await engine.store.next_due()]
    times = [time for time in found if time is not None]
    return min(times) if times else None


async def _answer(engine: Engine, run: str, answers: Answers, answered: set[tuple[str, str]]) -> bool:
    """Answer one of the open waits of the run and of those below it. Returns False if there is none to answer."""
    view = await engine.runs.view(run)
    stuck: Stuck | None = None
    for wait in [*view.waits, *view.child_waits]:
        name = _answered_as(wait, answers)
        is_cancel = name is not None and answers[name] is CANCEL
        if (wait.kind in ("timer", "child") and not is_cancel) or (wait.run, wait.id) in answered:
            continue
        if name is None and wait.request.get("reason") == "code":
            raise Stuck(wait.request["text"])
        if name is None and wait.kind != "attention":
            if wait.expires_at_ms is not None or await _may_continue(engine, wait):
                continue
            hint = f'answers={{"{wait.block}": ...}}'
            asked = _ASKED.get(wait.kind, wait.kind)
            stuck = stuck or Stuck(f"block {wait.block!r} waits for {asked}, and there is no answer: {hint}")
            continue
        if is_cancel and await _is_cancelled(engine, run):
            continue
        answer = "retry" if name is None else answers[name]
        if wait.kind == "attention" and isinstance(answer, str) and answer not in wait.actions:
            answer = "retry"  # it is for another wait of the block
        answered.add((wait.run, wait.id))
        answer = answer(wait) if callable(answer) else answer
        await (engine.cancel(run) if answer is CANCEL else _send(engine, wait, answer))
        return True
    if stuck is not None:
        raise stuck
    return False


async def _is_cancelled(engine: Engine, run: str) -> bool:
    """Return True if the run was cancelled, by this process or by one that was killed."""
    posted = await engine.store.read_inbox(run)
    return bool(posted) or any(one.type == "run.cancelling" for one in await engine.store.read_events(run))


async def _may_continue(engine: Engine, wait: WaitView) -> bool:
    """Return True if the block may continue without an answer: a durable function also waits for something that comes
    by itself, or is at work."""
    view = await engine.runs.view(wait.run)
    at_work = any(node.key == wait.key and node.status in ("running", "retrying") for node in view.nodes)
    return at_work or any(one.key == wait.key and one.kind in ("timer", "child") for one in view.waits)


def _answered_as(wait: WaitView, answers: Answers) -> str | None:
    """Return the name under which there is an answer. A durable function has many waits, of one block."""
    update = (wait.name or "").removeprefix(UPDATE)
    return next((name for name in (wait.block, wait.name, wait.title, update) if name in answers), None)


_ASKED: Final = {"approval": "an approval", "form": "a form", "signal": "a signal", "webhook": "a callback"}


async def _send(engine: Engine, wait: WaitView, answer: Any) -> None:
    if wait.kind == "signal":
        assert wait.name is not None, "a wait for a signal has its name"
        key = f"test:{wait.id}"
        if wait.name.startswith(UPDATE):
            await engine.functions.ask(wait.run, wait.name.removeprefix(UPDATE), answer, key, None, 0)
            return
        await engine.signal(wait.run, wait.name, answer, correlation=wait.correlation, dedupe_key=key)
        return
    assert wait.link is not None, "a wait that can be answered has a link"
    if wait.kind == "webhook":
        await engine.callbacks.receive(wait.link.rpartition("/")[2], answer, {})
        return
    action, fields = None, answer
    if isinstance(answer, str):
        action, fields = answer, {}
    elif isinstance(answer, Mapping) and "action" in answer:
        action, fields = answer["action"], answer.get("fields") or {}
    await engine.answer(wait.link, fields, action, by="weft.testing")


# --- one block by itself ---


BLOCK = "block"  # its id in the document


class Ran(Struct, frozen=True):
    """The result of a block. `error`: code, message and traceback of the last attempt, or None if it succeeded.
    `route`: the exit. `log`: its lines; `text`: the live text. `findings`: those of its params, warnings included; with
    an error among them the status is `invalid`, and the block did not run."""

    status: str
    output: Any
    error: dict[str, Any] | None
    route: str | None
    attempts: int
    log: tuple[str, ...]
    text: str
    findings: tuple[Diagnostic, ...] = ()


async def run_block(
    block: Block | str,
    params: Mapping[str, Any] | None = None,
    *,
    input: Any = None,
    answers: Answers | Any = None,
    policy: Mapping[str, Any] | None = None,
    blocks: Iterable[Block] = (),
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] | Mapping[str, Iterable[str]] = (),
    allow_private: Iterable[str] = (),
    http: ScriptedHttp | None = None,
) -> Ran:
    """Run a block type (or the installed one of this name) in a workflow that has nothing else. `params` are those of a
    document: texts may have references, such as `<start.item>` to `input`. `answers`: the answer to its wait. `http`
    answers its requests."""
    name = block if isinstance(block, str) else block.spec.type
    document = {
        "format": "weft/1",
        "name": "alone",
        "blocks": {
            "start": {"type": "start"},
            BLOCK: {"type": name, "params": dict(params or {}), "policy": dict(policy or {})},
        },
        "edges": [{"source": "start", "target": BLOCK}],
    }
    types = [*blocks, *([] if isinstance(block, str) else [block])]
    async with engine(blocks=types, env=env, secrets=secrets, allow_private=allow_private, http=http) as opened:
        compiled = await opened.workflows.compile(document)
        findings = tuple(compiled.diagnostics)
        if compiled.plan is None:
            return Ran("invalid", None, None, None, 0, (), "", findings)
        submitted = await opened.submit(document, input=input)
        view = await finish(opened, submitted.run, None if answers is None else {BLOCK: answers})
        node = next(node for node in view.nodes if node.key == BLOCK)
        log: list[str] = []
        text = ""
        for record in await opened.store.read_events(submitted.run):
            if record.type == "node.log" and record.node == BLOCK:
                data = data_of(record)
                if data.get("stream", "log") == "log":
                    log += data["message"].split("\n")
                else:
                    text += data["message"]
        return Ran(node.status, node.output, node.error, node.route, node.attempt, tuple(log), text, findings)
