"""Documents that were accepted, run by an engine whose outside is made up: whatever they do, they end or wait, and
nothing of ours breaks. Time is moved by hand: what waits until tomorrow need not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, seed, settings

from compiler.diagnostics import CompileError
from executor.blocks.http.exchanges import Answer
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import BlockError, WeftError
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from executor.service.views import RunView
from server.http.errors import status_of
from tests.fuzz.budget import examples, rounds
from tests.fuzz.documents import documents, triggers
from tests.fuzz.mutations import spoiled
from tests.fuzz.params import BLOCKS, nested
from tests.support.clock import ManualClock
from tests.support.model_store.store import ModelStore

pytestmark = pytest.mark.proof

T = TypeVar("T")
QUIET_S = 60.0  # of real time, for a run to come to an end or to a wait: many times what any needs
DAY_MS = 24 * 3600 * 1000
HANDS_MAX = 12
ANSWERS: tuple[dict[str, Any], ...] = ({}, {"n": 1, "ok": True}, {"note": "\u202e", "x": None})


class Outside:
    """Every address outside: `up` answers, `down` does not, `strange` gives an unexpected answer."""

    async def request(self, method: str, url: str, **options: Any) -> Answer:
        host = url.partition("://")[2].partition("/")[0]
        if host.startswith("down"):
            raise BlockError(f"{url[:100]} is down", code="http_connection", retryable=True)
        if host.startswith("strange"):
            headers = {"content-type": "application/json", "retry-after": "soon"}
            return Answer(429, "Slow Down", headers, b'{"x": ', url, 1)
        return Answer(200, "OK", {"content-type": "application/json"}, b'{"x": [{"y": "<start>"}]}', url, 1)

    async def close(self) -> None:
        """Nothing is open."""


class World:
    """One engine and one loop for all examples."""

    def __init__(self, runner: asyncio.Runner, sandbox: Sandbox) -> None:
        self._runner = runner
        self._sandbox = sandbox
        self.clock = ManualClock()
        self.errors: list[str] = []

    async def open(self) -> None:
        services = Services(
            sandbox=self._sandbox,
            http=Outside(),  # type: ignore[arg-type]
            env={"KEY": "secret-of-the-tests", "HOOK_SECRET": "another"},
            secrets=frozenset({"KEY", "HOOK_SECRET"}),
        )
        self.engine = await Engine.open(
            ModelStore(), registry=Registry.load(BLOCKS, self._sandbox), services=services, clock=self.clock
        )
        await self.engine.workflows.save(nested(0), "child")

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(what)

    async def play(self, document: Any, trigger: str | None, input: Any) -> RunView | None:
        """Run it; answer its questions, let time pass, cancel in the end. Returns None where it is refused."""
        try:
            run = (await self.engine.submit(document, input=input, trigger=trigger)).run
        except CompileError:
            return None
        except WeftError as error:
            assert status_of(error) < 500, error
            return None
        for hand in range(HANDS_MAX):
            view = await self._still(run)
            if view.status in TERMINAL:
                return view
            await self._answer(run, hand)
            self.clock.advance(1000 if hand < HANDS_MAX / 2 else 400 * DAY_MS)
        await self.engine.cancel(run, "the test is over")
        if (await self._still(run)).status not in TERMINAL:  # its cleanup waits for a person
            await self.engine.cancel(run, "without the cleanup", now=True)
        return await self._still(run)

    async def _still(self, run: str) -> RunView:
        """The run when nothing moves any more; retries are moved along."""
        async with asyncio.timeout(QUIET_S):
            while True:
                view = await self.engine.wait_finished(run, timeout_s=0.05)
                if view.status in TERMINAL or view.status == "waiting":
                    return view
                self.clock.advance(100)

    async def _answer(self, run: str, hand: int) -> None:
        await _tolerant(self.engine.signal(run, "go", {"x": hand}, correlation="k" if hand % 2 else None))
        for wait in await self.engine.waits.list("pending", run):
            token = (wait.link or "").rpartition("/")[2]
            if wait.actions or wait.kind == "form":
                action = wait.actions[hand % len(wait.actions)] if wait.actions else None
                await _tolerant(self.engine.answer(token, ANSWERS[hand % len(ANSWERS)], action, by="fuzz"))


async def _tolerant(what: Coroutine[Any, Any, Any]) -> None:
    try:
        await what
    except WeftError as error:
        assert status_of(error) < 500, error


class Complaints(logging.Handler):
    """What the engine logs as an error is one of ours: a run loop that was dropped, a handler that raised."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self._errors.append(logging.Formatter().format(record))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        world = World(runner, Sandbox(threads=2))
        world.do(world.open())
        complaints = Complaints(world.errors)
        logging.getLogger("weft").addHandler(complaints)
        yield world
        logging.getLogger("weft").removeHandler(complaints)
        world.do(world.engine.close(grace_s=1))


def check(world: World, data: bytes) -> None:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return
    if not isinstance(document, dict):
        return
    for trigger, input in ((None, {"n": 2}), *((trigger, None) for trigger in triggers(document)[1:3])):
        view = world.do(world.play(document, trigger, input))
        assert not world.errors, world.errors.pop()
        assert view is None or view.status in TERMINAL, view


accepted = documents().map(orjson.dumps) | spoiled()


@examples(120)
@given(data=accepted)
def test_what_was_accepted_ends_or_waits(world: World, data: bytes) -> None:
    check(world, data)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_soak(world: World) -> None:
    """Other documents every time; the seed of a round that fails is printed."""
    for number in rounds():

        @seed(number)
        @settings(max_examples=25, derandomize=False)
        @given(data=accepted)
        def run(data: bytes) -> None:
            check(world, data)

        run()
