"""Waits over real HTTP: answered once however many press, several at once in any order, wherever in the plan they are,
and kept over kill -9."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from tests.support.api import ended
from tests.support.documents import document, in_a_row
from tests.support.server import SyncServerProcess

PRESSES = 50
Start = Callable[..., SyncServerProcess]
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "approval": (
        {"type": "approval", "params": {"fields": {"properties": {"n": {"type": "integer"}}}}},
        {"action": "approve"},
    ),
    "form": (
        {"type": "form", "params": {"fields": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}},
        {},
    ),
    "callback": ({"type": "callback", "params": {"schema": {"type": "object", "required": ["fields"]}}}, {}),
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=PRESSES)
    async with httpx.AsyncClient(timeout=90, limits=limits, trust_env=False) as client:
        yield client


async def started(client: httpx.AsyncClient, url: str, what: dict[str, Any]) -> str:
    response = await client.post(f"{url}/api/runs?wait=60", json={"document": what})
    assert response.json()["status"] == "waiting", response.text
    return str(response.json()["run"])


async def waits_of(client: httpx.AsyncClient, url: str, run: str, count: int) -> dict[str, str]:
    """Links by node key, once there are so many."""
    async with asyncio.timeout(60):
        while True:
            waits = (await client.get(f"{url}/api/waits", params={"run": run})).json()["waits"]
            if len(waits) == count:
                return {wait["key"]: wait["link"] for wait in waits}
            assert len(waits) < count, waits
            await asyncio.sleep(0.02)


async def journal(client: httpx.AsyncClient, url: str, run: str) -> list[dict[str, Any]]:
    headers = {"accept": "application/json"}
    page = await client.get(f"{url}/api/runs/{run}/events?limit=10000", headers=headers)
    return list(page.json()["events"])


@pytest.mark.parametrize("kind", list(KINDS))
async def test_of_fifty_answers_one_counts(server: SyncServerProcess, client: httpx.AsyncClient, kind: str) -> None:
    url = server.url
    block, answer = KINDS[kind]
    run = await started(client, url, in_a_row("waits", {"ask": block}))
    (link,) = (await waits_of(client, url, run, 1)).values()
    assert ("/callbacks/" in link) == (kind == "callback")

    async def press(n: int) -> httpx.Response:
        return await client.post(link, json={**answer, "fields": {"n": n}}, headers={"user-agent": f"presser-{n}"})

    answers = await asyncio.gather(*(press(n) for n in range(PRESSES)))
    taken = 202 if kind == "callback" else 200
    assert Counter(answer.status_code for answer in answers) == {taken: 1, 409: PRESSES - 1}
    winner = next(n for n, answer in enumerate(answers) if answer.status_code == taken)
    view = await ended(client, run, url)
    assert view["status"] == "succeeded", view
    told = {(answer.json()["code"], answer.json()["answered_at_ms"]) for answer in answers if answer.status_code == 409}
    if kind == "callback":
        assert view["output"]["body"]["fields"] == {"n": winner}
        assert told == {("already_answered", view["output"]["received_at"])}
        assert {a.json()["answered_by"] for a in answers if a.status_code == 409} == {f"presser-{winner}"}
    else:
        assert view["output"]["n"] == winner
        assert told == {("already_answered", view["output"]["answered_at"])}
    closed = [event for event in await journal(client, url, run) if event["type"] == "wait.closed"]
    assert [event["data"]["outcome"] for event in closed] == ["answered"]


def everywhere() -> tuple[dict[str, Any], list[str]]:
    """Questions side by side, in a parallel, and in a loop inside a parallel; and the keys of the first ones."""
    form = {"type": "form", "params": {"fields": {"properties": {"n": {"type": "integer"}}}}}
    blocks: dict[str, Any] = {
        "left": form,
        "right": {"type": "callback", "params": {}},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 2}},
        "each": {"type": "loop", "parent": "fan", "params": {"mode": "for", "count": 2}},
        "deep": {**form, "parent": "each"},
        "then": {"type": "set", "parent": "each", "params": {"value": "<deep.n>"}},
        "all": {"type": "set", "params": {"value": {"l": "<left.n>", "r": "<right.body>", "f": "<fan.results>"}}},
    }
    keys = ["left", "right", "deep@fan[0]/each#0", "deep@fan[1]/each#0"]
    return (
        document(
            "waits",
            "start left",
            "start right",
            "start fan",
            "fan body each",
            "each body deep",
            "deep then",
            "left all",
            "right all",
            "fan all",
            blocks=blocks,
        ),
        keys,
    )


def numbers_in(value: Any) -> set[int]:
    if isinstance(value, dict):
        value = list(value.values())
    return {value} if isinstance(value, int) else set().union(*map(numbers_in, value)) if value else set()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in (1, 2))])
async def test_waits_are_answered_in_any_order_over_kills(
    start_server: Start, client: httpx.AsyncClient, seed: int
) -> None:
    """Before each second answer the server is killed: what was answered stays answered, what was open stays open."""
    chance = random.Random(seed)
    what, first_keys = everywhere()
    server = start_server(WEFT_LEASE_MS="1000")
    run = await started(client, server.url, what)
    numbers = {"left": 1, "right": 2} | {f"deep@fan[{b}]/each#{i}": 10 * b + i for b in (0, 1) for i in (0, 1)}
    left, done = list(first_keys), 0
    links: dict[str, str] = {}
    while left:
        for key, link in (await waits_of(client, server.url, run, len(left))).items():
            path = httpx.URL(link).path
            assert links.setdefault(key, path) == path, "a link outlives the process"
        assert set(left) <= set(links)
        if done % 2:
            server.kill()
            server = start_server(WEFT_LEASE_MS="1000")
        key = left.pop(chance.randrange(len(left)))
        body = {"fields": {"n": numbers[key]}}
        answered = await client.post(server.url + links[key], json=body)
        assert answered.status_code in (200, 202), answered.text
        assert (await client.post(server.url + links[key], json=body)).status_code == 409
        done += 1
        if key.endswith("#0"):
            left.append(key.replace("#0", "#1"))
    view = await ended(client, run, server.url)
    assert view["status"] == "succeeded", view["error"]
    assert done == 6
    assert view["output"]["l"] == 1 and view["output"]["r"] == {"fields": {"n": 2}}
    assert numbers_in(view["output"]["f"]) == {0, 1, 10, 11}
    started_nodes = Counter(e["key"] for e in await journal(client, server.url, run) if e["type"] == "node.started")
    asked = {key: count for key, count in started_nodes.items() if key in numbers}
    assert asked == dict.fromkeys(numbers, 1), "a block that waits is not run again"


async def test_early_signals_survive_a_kill_and_a_key_counts_once(
    start_server: Start, client: httpx.AsyncClient
) -> None:
    """Two signals come before anybody waits for them; one of them is sent fifty times at once with one key."""
    blocks = {
        "ask": {"type": "form", "params": {"fields": {"properties": {}}}},
        "one": {"type": "signal", "params": {"name": "paid"}},
        "two": {"type": "signal", "params": {"name": "paid", "correlation": "b"}},
        "all": {"type": "set", "params": {"value": ["<one.payload>", "<two.payload>"]}},
    }
    server = start_server(WEFT_LEASE_MS="1000")
    run = await started(client, server.url, in_a_row("waits", blocks))
    (link,) = (await waits_of(client, server.url, run, 1)).values()

    async def send(n: int) -> httpx.Response:
        body = {"payload": n, "correlation": "a", "dedupe_key": "first"}
        return await client.post(f"{server.url}/api/runs/{run}/signals/paid", json=body)

    sent = await asyncio.gather(*(send(n) for n in range(PRESSES)))
    assert Counter(response.status_code for response in sent) == {202: 1, 200: PRESSES - 1}
    assert {response.json()["seq"] for response in sent} == {1}
    winner = next(n for n, response in enumerate(sent) if response.status_code == 202)
    other = await client.post(f"{server.url}/api/runs/{run}/signals/paid", json={"payload": "b", "correlation": "b"})
    assert other.json()["seq"] == 2

    server.kill()
    server = start_server(WEFT_LEASE_MS="1000")
    again = await client.post(
        f"{server.url}/api/runs/{run}/signals/paid", json={"payload": 0}, headers={"idempotency-key": "first"}
    )
    assert (again.status_code, again.json()["seq"]) == (200, 1)
    assert (await client.post(server.url + httpx.URL(link).path, json={"fields": {}})).status_code == 200
    view = await ended(client, run, server.url)
    assert (view["status"], view["output"]) == ("succeeded", [winner, "b"])
    listed = (await client.get(f"{server.url}/api/runs/{run}/signals")).json()["signals"]
    assert [signal["taken_by"].partition("!")[0] for signal in listed] == ["one", "two"]
