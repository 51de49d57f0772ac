"""An `http` block, or what it is redirected to, must not reach the API of the server that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.blocks.http import addresses
from executor.blocks.http.addresses import Own
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError
from tests.support.endpoints import Request, answer, http
from tests.support.server import SyncServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    """The operator has allowed the whole machine: that is not the server itself."""
    folder = tmp_path_factory.mktemp("own-api")
    process = SyncServerProcess(folder, {"WEFT_ALLOW_PRIVATE": "127.0.0.0/8,::1/128,localhost"})
    yield process
    process.kill()


def _calls(urls: list[str], method: str = "GET") -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "calls",
        "blocks": {
            "start": {"type": "start", "name": "Start"},
            "fan": {"type": "parallel", "name": "Fan", "params": {"items": urls, "on_branch_error": "collect"}},
            "call": {
                "type": "http",
                "name": "Call",
                "parent": "fan",
                "params": {"url": "<fan.item>", "method": method},
                "policy": {"retry": {"max_attempts": 1}},
            },
        },
        "edges": [{"source": "start", "target": "fan"}, {"source": "fan", "handle": "body", "target": "call"}],
    }


async def _outcomes(server: SyncServerProcess, urls: list[str], method: str = "GET") -> list[Any]:
    """For each URL the status it answered, or the code of the error."""
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        response = await client.post("/api/runs?wait=60", json={"document": _calls(urls, method)})
        run = response.json()
        assert run["status"] == "succeeded", run
        results = (await client.get(f"/api/runs/{run['run']}")).json()["output"]["results"]
    return [one[0]["status"] if isinstance(one, list) else one["error"]["code"] for one in results]


async def test_the_api_is_closed_in_every_spelling_and_the_doors_are_open(server: SyncServerProcess) -> None:
    port = server.url.rpartition(":")[2]
    hosts = (
        "127.0.0.1",
        "localhost",
        "127.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "127.0.0.2",
        "127.0.0.1.",
    )
    closed = [f"http://{host}:{port}/api/waits" for host in hosts]
    tricks = [
        "/demo/../api/waits",
        "/demo/%2e%2e/api/waits",
        "/demo//../api/waits",
        "/demo/..%2fapi/waits",
        "//api/waits",
        "/",
        "/demo/",
    ]
    closed += [server.url + path for path in tricks]
    closed += [f"http://x@127.0.0.1:{port}/demo/echo", f"http://127.0.0.1:{port}@127.0.0.1:{port}/api/waits"]
    found = dict(zip(closed, await _outcomes(server, closed), strict=True))
    assert set(found.values()) <= {"address_refused", "url_invalid", "http_connection"}, found
    assert found[f"{server.url}/api/waits"] == "address_refused"
    assert await _outcomes(server, [f"{server.url}/demo/echo", f"{server.url}/demo/echo?a=1"]) == [200, 200]
    assert await _outcomes(server, [f"{server.url}/hooks/none"], "POST") == ["http_status"], "it was asked: 404"
    assert await _outcomes(server, [f"{server.url}/api/upkeep/gc"], "POST") == ["address_refused"]


async def test_no_redirect_leads_to_the_server(server: SyncServerProcess) -> None:
    def away(request: Request) -> bytes:
        return answer(302, location=f"{server.url}{request.target}")

    async with http(away) as elsewhere:
        urls = [f"{elsewhere.url}{path}" for path in ("/api/waits", "/demo/echo", "/hooks/a")]
        assert await _outcomes(server, urls) == ["redirect_refused"] * 3
        spelled = f"http://127.1:{server.url.rpartition(':')[2]}"
    async with http(lambda request: answer(302, location=f"{spelled}/api/waits")) as elsewhere:
        assert await _outcomes(server, [elsewhere.url]) == ["address_refused"]


async def test_the_operator_may_name_it(tmp_path: Path) -> None:
    """Naming host and port is a decision, and even then no redirect leads there."""
    async with http(lambda request: answer(200)) as own:
        client = GuardedClient([own.place], own=Own(own.place))
        try:
            assert (await client.request("GET", f"{own.url}/api/waits")).status == 200
            async with http(lambda request: answer(302, location=f"{own.url}/api/waits")) as other:
                client = GuardedClient([own.place, other.place], own=Own(own.place))
                with pytest.raises(BlockError) as caught:
                    await client.request("GET", other.url)
                assert caught.value.code == "redirect_refused"
        finally:
            await client.close()
            await asyncio.sleep(0)


@pytest.fixture
async def outside(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GuardedClient]:
    """127.0.0.9 counts as public here."""
    truly = addresses.is_public
    monkeypatch.setattr(addresses, "is_public", lambda address: str(address) == "127.0.0.9" or truly(address))

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9"] if host == "outside.test" else ["127.0.0.1"]

    client = GuardedClient(["inside.test", "other.test"], resolve=resolve)
    yield client
    await client.close()


async def test_a_public_place_does_not_choose_among_the_private_ones(outside: GuardedClient) -> None:
    async with http(lambda request: answer(200, b"inside")) as inside:
        port = inside.place.partition(":")[2]
        assert (await outside.request("GET", f"http://inside.test:{port}/")).body == b"inside"

        async with http(lambda r: answer(302, location=f"http://inside.test:{port}/"), host="127.0.0.9") as public:
            url = f"http://outside.test:{public.place.partition(':')[2]}/"
            with pytest.raises(BlockError) as caught:
                await outside.request("GET", url)
            assert caught.value.code == "address_refused" and "URL of the block" in caught.value.hint

        async with http(lambda r: answer(302, location=f"http://inside.test:{port}/")) as other:
            found = await outside.request("GET", f"http://other.test:{other.place.partition(':')[2]}/")
            assert found.body == b"inside", "the private ones may send to each other"
