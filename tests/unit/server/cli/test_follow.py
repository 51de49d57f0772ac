"""When `weft run --follow` leaves: what it does with a parked run whose row, server or inbox is not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import httpx
import orjson
import pytest

from server.cli import follow
from server.client import ApiError, AsyncClient, ServerUnreachable, exchange

if TYPE_CHECKING:
    from server.client.answers import RunDetail

ASKED = {"id": "w1", "kind": "approval", "status": "pending", "label": "Ask", "link": "http://x/resume/t"}
WAITING = {"id": "r1", "status": "waiting", "seq": 1, "waits": [ASKED]}
AHEAD = {**WAITING, "seq": 7}
RUNNING = {**WAITING, "status": "running"}
UNREAD = {**WAITING, "unread": 1}


class Run:
    """A run with one event. When it has parked, its stream stays open and says nothing more. The n-th look finds the
    n-th of `found`: its view, a status of the server, or None for a server that is gone. The last one stays."""

    def __init__(self, *found: dict[str, Any] | int | None, last: str = "run.parked") -> None:
        self.found = list(found)
        self.last = last

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=self._stream())
        now = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if now is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(now) if isinstance(now, int) else httpx.Response(200, json=now)

    async def _stream(self) -> AsyncIterator[bytes]:
        event = {"run": "r1", "seq": 1, "at_ms": 1, "type": self.last, "data": {}}
        yield b"id: 1\nevent: %s\ndata: %s\n\n" % (self.last.encode(), orjson.dumps(event))
        if self.last == "run.parked":
            await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LOOK_S", 0.0005)
    monkeypatch.setattr(follow, "LOOK_MAX_S", 0.001)
    monkeypatch.setattr(exchange, "PAUSE_FIRST_S", 0.001)


async def followed(run: Run, patience_s: float = 60, *, as_json: bool = True) -> str:
    transport = httpx.MockTransport(run)
    async with (
        AsyncClient("http://weft", "", patience_s=patience_s, transport=transport) as client,
        asyncio.timeout(60),
    ):
        return await follow.follow(client, "r1", as_json=as_json)


@pytest.mark.parametrize(
    "before",
    [[], [RUNNING] * 200, [UNREAD, UNREAD], [AHEAD], [None, None], [503, RUNNING, 429]],
    ids=["at-once", "row-is-late", "no-event-comes-of-what-it-was-given", "events-to-come", "gone", "busy"],
)
async def test_it_leaves_once_the_run_stands_still(before: list[dict[str, Any] | int | None]) -> None:
    run = Run(*before, WAITING)
    assert await followed(run) == "waiting"
    assert run.found == [WAITING]


async def test_a_question_beside_a_timer_is_printed_once_and_the_run_followed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {**ASKED, "label": "Pay?"}
    timer = {"id": "w2", "kind": "timer", "status": "pending"}
    run = Run(*[{**WAITING, "waits": [asked, timer]}] * 3, {**WAITING, "waits": []}, {**WAITING, "waits": [ASKED]})
    assert await followed(run, as_json=False) == "waiting"
    printed = capsys.readouterr().err
    assert printed.count("Pay?: http://x/resume/t") == 1


async def test_a_refusal_is_reported() -> None:
    with pytest.raises(ApiError, match="404"):
        await followed(Run(RUNNING, 404))


async def test_a_server_that_stops_with_the_last_event_is_waited_for() -> None:
    run = Run(None, 503, {"id": "r1", "status": "failed", "seq": 1}, last="run.finished")
    assert await followed(run) == "failed"


async def test_a_server_that_stays_away_is_reported() -> None:
    with pytest.raises(ServerUnreachable):
        await followed(Run(None, last="run.finished"), patience_s=0.01)


def test_a_failed_run_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "llm_missing", "message": "a library is missing", "hint": "pip install it"}
    follow._report(cast("RunDetail", {"id": "r1", "status": "failed", "error": error}))
    assert capsys.readouterr().err.splitlines() == ["failed: a library is missing", "  pip install it"]


@pytest.mark.parametrize(("installed", "view"), [(True, "table"), (False, "lines")])
async def test_a_terminal_has_a_table_where_rich_is_installed(
    installed: bool, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def table(*_: Any) -> dict[str, str]:
        return {"view": "table"}

    async def lines(*_: Any) -> dict[str, str]:
        return {"view": "lines"}

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(follow, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(follow, "_watch_live", table)
    monkeypatch.setattr(follow, "_watch", lines)
    found: Any = await follow._follow_one(cast(AsyncClient, None), "r1", False)
    assert found["view"] == view
