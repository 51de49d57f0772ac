from __future__ import annotations

import httpx

from server.api.demo import KEYS_MAX, Calls


async def test_it_returns_what_came(client: httpx.AsyncClient) -> None:
    response = await client.post("/demo/echo?a=1", json={"x": [1]}, headers={"idempotency-key": "k"})
    body = response.json()
    assert (body["method"], body["query"], body["body"]) == ("POST", {"a": "1"}, {"x": [1]})
    assert body["headers"]["idempotency-key"] == "k"


async def test_it_fails_as_often_as_asked_for_each_key(client: httpx.AsyncClient) -> None:
    for key in ("one", "two"):
        codes = [
            (await client.get("/demo/echo?fail=2", headers={"idempotency-key": key})).status_code for _ in range(4)
        ]
        assert codes == [503, 503, 200, 200]
    codes = [(await client.post("/demo/echo?fail=1&key=three", json={})).status_code for _ in range(2)]
    assert codes == [503, 200]


async def test_bounds(client: httpx.AsyncClient) -> None:
    assert (await client.get("/demo/echo?delay_ms=1")).status_code == 200
    assert (await client.get("/demo/echo?delay_ms=99999999")).status_code == 400
    assert (await client.get("/demo/echo?fail=-1")).status_code == 400


def test_old_keys_are_forgotten() -> None:
    calls = Calls()
    assert [calls.count("a"), calls.count("a")] == [1, 2]
    for number in range(KEYS_MAX):
        calls.count(str(number))
    assert calls.count("a") == 1
