from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.errors import WeftError
from server.api.people import InviteRequest
from server.api.runs import RunDocumentRequest
from server.http.errors import BodyInvalid, MalformedBody, status_of
from server.http.request import convert, parse_json
from server.settings import Limits

JSON = {"content-type": "application/json"}
LIMITS = Limits()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"[" * 2_000 + b"]" * 2_000,
        b'{"a":' * 1_500 + b"1" + b"}" * 1_500,
        b"[" * 69 + b"]" * 69,
        b"{",
        b'{"a": NaN}',
        b"\xff\xfe",
        b'"\\ud800"',
        b"nope",
    ],
)
async def test_hostile_json_is_a_400(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post("/api/runs", content=body, headers=JSON)
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"


def test_depth_is_counted_exactly() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth + b" "

    filler = b'["' + b"[" * 100 + b'"]'  # brackets in a text are no depth
    assert parse_json(filler, LIMITS) == ["[" * 100]
    parse_json(nested(LIMITS.json_depth), LIMITS)
    with pytest.raises(MalformedBody, match="deeper"):
        parse_json(nested(LIMITS.json_depth + 1), LIMITS)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_refused(data: bytes) -> None:
    try:
        parse_json(data, LIMITS)
    except WeftError as error:
        assert status_of(error) == 400


async def test_a_large_body_is_refused_by_its_length(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/runs", content=b" " * (LIMITS.request_bytes + 1), headers=JSON)
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


async def test_a_large_body_without_a_length_is_refused_while_it_streams(client: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 64 * 1024
            yield b" " * (64 * 1024)

    response = await client.post("/api/runs", content=endless(), headers=JSON)
    assert response.status_code == 413
    assert sent < LIMITS.request_bytes + 2 * 64 * 1024


def test_a_wrong_shape_is_pointed_at() -> None:
    with pytest.raises(BodyInvalid) as caught:
        convert({"document": {}, "trigger": 5}, RunDocumentRequest)
    assert caught.value.pointer == "/trigger"
    with pytest.raises(BodyInvalid, match="unknown field `workflow`"):
        convert({"document": {}, "workflow": {}}, RunDocumentRequest)


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        (
            {"id": "Ada!", "role": "viewer"},
            "/id",
            "id must be 1 to 100 lower-case letters, digits and . _ @ -, and begin with a letter or a digit.",
        ),
        ({"id": "ada", "role": "boss"}, "/role", "role cannot be 'boss'."),
        ({"id": "ada", "role": 1}, "/role", "role must be text, not a whole number."),
        ({"role": "viewer"}, "", "The body needs the field id."),
        ([], "", "The body must be an object, not a list."),
    ],
)
def test_what_is_wrong_in_plain_words(body: object, pointer: str, message: str) -> None:
    with pytest.raises(BodyInvalid) as caught:
        convert(body, InviteRequest)
    assert (caught.value.pointer, caught.value.message) == (pointer, message)
