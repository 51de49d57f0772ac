from __future__ import annotations

import asyncio
import gc
import itertools
from typing import Any

import pytest
from msgspec import Struct
from starlette.responses import Response

from server.http import response as module
from server.http.response import Json, block_response, long_json


def test_status_headers_and_body_are_the_workflows() -> None:
    response = block_response(
        {"status": 201, "headers": {"X-Kind": "a", "Content-Type": "text/csv"}, "body": "a,b"}, {"Weft-Run": "r"}
    )
    assert (response.status_code, response.body) == (201, b"a,b")
    assert response.headers["x-kind"] == "a"
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["weft-run"] == "r"


def test_json_is_the_default() -> None:
    response = block_response({"body": {"a": 1}}, {})
    assert (response.status_code, response.headers["content-type"], response.body) == (
        200,
        "application/json",
        b'{"a":1}',
    )


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Content-Security-Policy",
        "Access-Control-Allow-Origin",
        "Bad Name",
        "x\r\ny",
    ],
)
def test_headers_that_speak_for_the_server_are_dropped(name: str) -> None:
    response = block_response({"headers": {name: "v"}, "body": ""}, {})
    assert name.lower() not in response.headers or response.headers[name] != "v"


def test_a_header_cannot_be_split() -> None:
    assert "x-a" not in block_response({"headers": {"x-a": "1\r\nSet-Cookie: b=c"}, "body": ""}, {}).headers


def test_html_of_a_workflow_has_no_origin() -> None:
    response = block_response({"headers": {"content-type": "text/html"}, "body": "<script>"}, {})
    assert response.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    "answer", [{"status": 99}, {"status": "x"}, {"headers": []}, {"status": 204, "body": "gone"}, {}]
)
def test_odd_answers_still_answer(answer: dict[str, Any]) -> None:
    response = block_response(answer, {})
    assert 200 <= response.status_code < 600
    assert response.status_code != 204 or response.body == b""


class Long(Struct):
    first: str
    items: tuple[Any, ...]
    last: Any = None


class Bare(Struct):
    items: tuple[Any, ...]


@pytest.mark.parametrize("count", [0, 1, 500, 501, 1_234])
@pytest.mark.parametrize("shape", [lambda items: Long('a"b', items, {"n": [1]}), Bare])
async def test_a_long_answer_is_the_same_in_parts(shape: Any, count: int) -> None:
    value = shape(tuple(Long(str(n), (n, None)) for n in range(count)))
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("it reads nothing")

    await (await long_json(value, "items"))({"type": "http"}, receive, send)
    whole = Json(value)
    start, *bodies = sent
    assert b"".join(part["body"] for part in bodies) == whole.body
    assert (start["status"], sorted(start["headers"])) == (200, sorted(whole.raw_headers))
    assert not bodies[-1].get("more_body")
    assert (len(bodies) > 1) is (count > 500)


class Item:
    """Not a struct: it can be watched."""


async def test_what_a_long_answer_shows_is_freed_while_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, 100,000 nodes would hold the event loop."""
    monkeypatch.setattr(module, "to_json", lambda value: b"[]" if isinstance(value, tuple) else b"{}")
    made = 5_000

    async def read() -> Response:
        return await long_json(Bare(tuple(Item() for _ in range(made))), "items")

    answer, left = await read(), list[int]()

    async def watch() -> None:
        while not left or left[-1]:
            left.append(sum(isinstance(each, Item) for each in gc.get_objects()))
            await asyncio.sleep(0)

    async def send(message: Any) -> None:
        pass

    async def receive() -> Any:
        raise AssertionError("it reads nothing")

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await answer({"type": "http"}, receive, send)
    await watching
    assert left[0] == made and left[-1] == 0
    assert max(before - after for before, after in itertools.pairwise(left)) <= 500
