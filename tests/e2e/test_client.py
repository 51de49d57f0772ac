"""`weft.Client` and `weft.AsyncClient` against a real server: over kill -9, lost answers and refusals."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.lossy import Lossy
from tests.support.server import ServerProcess, SyncServerProcess, free_port

TOKEN = "a-token-of-twenty-characters"
START = {"type": "start", "name": "Start"}
ASK = {
    "type": "approval",
    "name": "Ask",
    "params": {
        "title": "Pay?",
        "actions": ["approve", "reject"],
        "fields": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
    },
}


def in_order(name: str, **blocks: dict[str, Any]) -> dict[str, Any]:
    ids = ["start", *blocks]
    edges = [{"source": a, "target": b} for a, b in pairwise(ids)]
    return {"format": "weft/1", "name": name, "blocks": {"start": START, **blocks}, "edges": edges}


def double() -> dict[str, Any]:
    return in_order("double", calc={"type": "set", "name": "Calc", "params": {"value": {"n": "<input.n>"}}})


def asking() -> dict[str, Any]:
    return in_order("asking", ask=ASK)


@pytest.fixture
async def lossy(start_server: Callable[..., SyncServerProcess]) -> AsyncIterator[Lossy]:
    server = start_server(WEFT_ALLOWED_HOSTS="127.0.0.1")
    async with Lossy(server.url) as proxy:
        yield proxy


def test_a_run_and_its_answer(server: SyncServerProcess) -> None:
    with weft.Client(server.url) as client:
        client.deploy(double())
        client.deploy(asking())
        done = client.run("double", {"n": 4})
        assert (done["status"], done["output"]) == ("succeeded", {"n": 4})
        asked = client.run("asking")
        assert asked["status"] == "waiting"
        (wait,) = asked["waits"]
        client.answer(wait, "approve", {"amount": 3}, by="ada")
        ended = client.wait_for(asked["id"], timeout_s=60)
        assert ended["status"] == "succeeded"
        events = list(client.follow(asked["id"]))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1].type == "run.finished"
        assert list(client.follow(asked["id"], after=len(events))) == []
        assert list(client.follow(asked["id"], after=2)) == events[2:]


async def test_the_same_awaited(server: SyncServerProcess) -> None:
    async with weft.AsyncClient(server.url) as client:
        asked = await client.run(asking())
        link = asked["waits"][0]["link"]
        assert (await client.read_link(link))["title"] == "Pay?"
        await client.answer(link, "reject", {"amount": 1})
        types = [event.type async for event in client.follow(asked["id"])]
        assert types[0] == "run.started" and types[-1] == "run.finished"
        first, second = await asyncio.gather(client.get_run(asked["id"]), client.health())
        assert (first["status"], second["status"]) == ("succeeded", "ok")


def test_a_run_that_fails_raises_with_the_run(server: SyncServerProcess) -> None:
    failing = in_order(
        "failing", stop={"type": "function", "name": "Stop", "params": {"code": "throw new Error('no more')"}}
    )
    with weft.Client(server.url) as client, pytest.raises(weft.RunFailed, match="no more") as failed:
        client.run(failing)
    assert failed.value.run["status"] == "failed"


def test_waiting_for_a_run_ends_in_time(server: SyncServerProcess) -> None:
    sleeping = in_order("sleeping", nap={"type": "wait", "name": "Nap", "params": {"seconds": 200_000}})
    with weft.Client(server.url) as client:
        began_s = time.monotonic()
        run = client.run(sleeping, timeout_s=1.5)
        assert run["status"] == "waiting" and 1.0 < time.monotonic() - began_s < 30
        client.cancel(run["id"], "enough")
        with pytest.raises(weft.RunFailed, match="was cancelled"):
            client.wait_for(run["id"], timeout_s=60)


async def test_a_lost_answer_starts_no_second_run(lossy: Lossy) -> None:
    async with weft.AsyncClient(lossy.url) as client:
        await client.deploy({**double(), "name": "once"})
        for _ in range(3):
            lossy.lose = 2
            await client.start("once", {"n": 1})
        assert lossy.lost == 6
        assert len((await client.runs(workflow="once"))["runs"]) == 3


async def test_nor_with_the_client_that_blocks(lossy: Lossy) -> None:
    def start() -> list[Any]:
        with weft.Client(lossy.url) as client:
            client.deploy({**double(), "name": "once-blocking"})
            lossy.lose = 2
            client.start("once-blocking", {"n": 1})
            return list(client.runs(workflow="once-blocking")["runs"])

    assert len(await asyncio.to_thread(start)) == 1
    assert lossy.lost == 2


async def test_what_may_have_been_done_is_not_sent_again(lossy: Lossy) -> None:
    async with weft.AsyncClient(lossy.url) as client:
        run = await client.run(asking())
        link = run["waits"][0]["link"]
        lossy.lose = 1
        with pytest.raises(weft.ServerUnreachable, match="was lost"):
            await client.answer(link, "approve", {"amount": 1})
        assert (await client.wait_for(run["id"], timeout_s=60))["status"] == "succeeded"


async def test_files_up_and_down_over_lost_answers(lossy: Lossy, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(3_000_000)
    source, target = tmp_path / "data.bin", tmp_path / "copy.bin"
    source.write_bytes(content)
    async with weft.AsyncClient(lossy.url) as client:
        await client.health()
        lossy.lose = 1
        file = await client.upload(source)
        assert (file["name"], file["size"]) == ("data.bin", len(content))
        assert await client.download(file["id"], target) == len(content)
        assert target.read_bytes() == content


def test_a_download_continues_where_it_was_cut(server: SyncServerProcess, tmp_path: Path) -> None:
    """The target stops it in the middle, as a lost connection does."""
    import httpx

    from server.client.files import Download

    content = random.Random(2).randbytes(2_000_000)
    target = tmp_path / "copy.bin"
    with weft.Client(server.url) as client:
        file = client.upload(content, name="data.bin", media_type="application/x-data")
        assert file["media_type"] == "application/x-data"
        write, cut = Download.write, [False]

        def cut_once(self: Download, piece: bytes) -> None:
            write(self, piece)
            if self.size > 500_000 and not cut[0]:
                cut[0] = True
                raise httpx.ReadError("cut")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Download, "write", cut_once)
            assert client.download(file["id"], target) == len(content)
        assert cut == [True] and target.read_bytes() == content


@pytest.mark.parametrize("blocking", [False, True])
async def test_follow_over_kill_9(tmp_path: Path, blocking: bool) -> None:
    """A run of twenty short waits, on a server that is killed twice meanwhile."""
    port, log, db = free_port(random.Random()), tmp_path / "log", tmp_path / "weft.db"
    naps = {f"nap{n}": {"type": "wait", "name": f"Nap {n}", "params": {"seconds": 0.2}} for n in range(20)}
    server = await ServerProcess.start(db, port, log)
    seen: list[weft.Event] = []
    try:
        await server.ready()
        async with weft.AsyncClient(server.url) as client:
            run = (await client.start(in_order("naps", **naps)))["run"]

            async def follow() -> None:
                async for event in client.follow(run):
                    seen.append(event)

            def follow_blocking() -> None:
                with weft.Client(server.url) as other:
                    seen.extend(other.follow(run))

            following = asyncio.create_task(asyncio.to_thread(follow_blocking) if blocking else follow())
            for _ in range(2):
                await asyncio.sleep(0.7)
                await server.kill()
                server = await ServerProcess.start(db, port, log)
                await server.ready()
            await asyncio.wait_for(following, 120)
            assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
            assert seen[-1].type == "run.finished"
            assert (await client.wait_for(run, timeout_s=60))["status"] == "succeeded"
    finally:
        await server.clean_up()


async def test_waiting_for_a_run_over_kill_9(tmp_path: Path) -> None:
    port, log, db = free_port(random.Random()), tmp_path / "log", tmp_path / "weft.db"
    nap = {"type": "wait", "name": "Nap", "params": {"seconds": 3}}
    server = await ServerProcess.start(db, port, log)
    try:
        await server.ready()
        async with weft.AsyncClient(server.url) as client:
            waiting = asyncio.create_task(client.run(in_order("nap", nap=nap), timeout_s=120))
            await asyncio.sleep(1)
            await server.kill()
            server = await ServerProcess.start(db, port, log)
            await server.ready()
            assert (await waiting)["status"] == "succeeded"
            assert len((await client.runs())["runs"]) == 1
    finally:
        await server.clean_up()


def test_a_server_that_is_not_there_is_said_at_once() -> None:
    began_s = time.monotonic()
    with weft.Client(f"http://127.0.0.1:{free_port(random.Random())}", "") as client:
        with pytest.raises(weft.ServerUnreachable, match="No weft server answers") as raised:
            client.runs()
        assert "weft serve" in raised.value.hint
    assert time.monotonic() - began_s < 10


def refused(call: Callable[[], Any]) -> weft.ApiError:
    with pytest.raises(weft.ApiError) as raised:
        call()
    return raised.value


def test_refusals_have_a_code_and_say_where(start_server: Callable[..., SyncServerProcess]) -> None:
    server = start_server(WEFT_TOKEN=TOKEN)
    with weft.Client(server.url, "") as client:
        assert (refused(client.runs).status, client.health()["status"]) == (401, "ok")
    with weft.Client(server.url, TOKEN, patience_s=0.2) as client:
        viewer = client.make_token("looks", "viewer")["token"]
        with weft.Client(server.url, viewer) as looks:
            assert looks.me()["role"] == "viewer"
            error = refused(lambda: looks.deploy(double()))
            assert (error.status, error.code) == (403, "forbidden")
        error = refused(lambda: client.start("nothing"))
        assert (error.status, error.code) == (404, "workflow_not_found")
        error = refused(lambda: client.make_token("", "viewer"))
        assert (error.status, error.pointer) == (422, "/name")
        wrong = in_order("wrong", calc={"type": "nonsense", "name": "Calc"})
        error = refused(lambda: client.deploy(wrong, "wrong"))
        assert error.status == 422 and error.diagnostics
        draft = client.create_draft(double())
        client.save_draft(draft["id"], draft["rev"], asking())
        error = refused(lambda: client.save_draft(draft["id"], draft["rev"], double()))
        assert (error.status, error.code) == (409, "draft_changed")
        run = client.run(double(), {"n": 1})
        assert refused(lambda: client.cancel(run["id"])).code == "run_ended"
        statuses = [refused(lambda: client.read_link("no-such-token")).status]
        while statuses[-1] == 404 and len(statuses) < 2_000:  # a slow machine asks more often than the limit at first
            statuses.append(refused(lambda: client.read_link("no-such-token")).status)
        assert statuses[0] == 404 and statuses[-1] == 429


def test_the_environment_says_which_server(server: SyncServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", server.url)
    with weft.Client() as client:
        assert client.url == server.url and client.server_version()["version"]
