"""Every route of the server has a method, and every method a route: with its parameters and the fields of its body."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from executor.kernel.store.statements import TERMINAL
from server.api import TABLE
from server.client import Client, ClientError, answers
from server.client.api import ENDED, Api, address
from server.client.call import UPLOAD, Call
from server.client.errors import ApiError
from server.client.run_calls import token_of
from server.http.request import parameters_of
from server.http.table import RouteSpec

# Routes without a method, and why.
LEFT_OUT = {
    ("GET", "/resume/{token}"): "the page of a link; read_link asks /api/resume",
    ("POST", "/resume/{token}"): "the form of that page; answer asks /api/resume",
    ("POST", "/hooks/{id}"): "the address for other systems, which sign with a secret of their own",
    ("GET", "/openapi.json"): "openapi asks /api/openapi.json",
    ("POST", "/mcp"): "the address for MCP clients",
    ("GET", "/demo/echo"): "a service for examples",
    ("POST", "/demo/echo"): "a service for examples",
}
# Not described by a Call: these send and receive more than one JSON.
STREAMED = {("POST", UPLOAD): "upload", ("GET", "/api/files/{id}"): "download"}
# Of routes that start runs: `run` waits by reading the run, which may be asked twice, and `follow` reads its events.
NOT_ASKED = {"wait", "preview"}
VALUES = {str: "text", bytes: b"bytes", int: 1, float: 1.0, bool: True}
METHODS = inspect.getmembers(Api, inspect.isfunction)
ROUTES = {(spec.method, spec.path): spec for spec in TABLE if spec.documented}


def described() -> Iterator[tuple[str, Call[Any]]]:
    """Each method with all its parameters; those that choose between two routes once for each."""
    for name, method in METHODS:
        parameters = list(inspect.signature(method).parameters.values())[1:]
        hints = typing.get_type_hints(method, localns={"answers": answers})
        named = {parameter.name: _value(hints[parameter.name]) for parameter in parameters}
        yield name, method(None, **named)
        if name == "start":
            yield name, method(None, **{**named, "workflow": {"blocks": {}}, "version": None})
        if name in ("end_sessions", "end_my_sessions"):
            yield name, method(None)


def _value(hint: Any) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if option in VALUES:
            return VALUES[option]
        if typing.is_typeddict(option):
            return dict.fromkeys(option.__annotations__, "text")
        match typing.get_origin(option):
            case typing.Literal:
                return typing.get_args(option)[0]
            case collections.abc.Sequence:
                return ["text"]
    return {"a": 1}


CALLS = list(described())


def test_every_route_has_a_method_and_every_method_a_route() -> None:
    made = {(one.method, one.path) for _, one in CALLS} | set(STREAMED)
    assert made - set(ROUTES) == set()
    assert set(ROUTES) - made == set(LEFT_OUT), "a route without a method: describe it in server/client/*_calls.py"


@pytest.mark.parametrize(("name", "one"), CALLS, ids=[f"{name}-{one.path}" for name, one in CALLS])
def test_a_method_knows_all_parameters_and_fields_of_its_route(name: str, one: Call[Any]) -> None:
    spec = ROUTES[one.method, one.path]
    queried = {parameter.name for parameter in parameters_of(spec.query)} if spec.query is not None else set()
    body = set(one.body) if isinstance(one.body, dict) else set()
    # What may stand in the query or in the body stands in one of them.
    same_route = [other for _, other in CALLS if (other.method, other.path) == (one.method, one.path)]
    sent = {parameter for other in same_route for parameter in other.params}
    if spec.method == "POST":
        queried -= NOT_ASKED - sent
    assert sent <= queried and queried <= sent | body
    assert body <= _fields(spec) or not _fields(spec)
    assert _fields(spec) <= body
    assert one.url.count("/") == one.path.count("/")
    keyed = {param.name for param in spec.params if param.where == "header"}
    assert (one.key is not None) <= ("Idempotency-Key" in keyed)
    assert (one.rev is not None) == ("If-Match" in keyed)


def _fields(spec: RouteSpec) -> set[str]:
    if not (isinstance(spec.body, type) and issubclass(spec.body, Struct)):
        return set()
    return {field.encode_name for field in msgspec.structs.fields(spec.body)}


@pytest.mark.parametrize("one", [one for _, one in CALLS], ids=[name for name, _ in CALLS])
def test_what_makes_a_run_is_sent_with_a_key(one: Call[Any]) -> None:
    spec = ROUTES[one.method, one.path]
    if any(param.name == "Idempotency-Key" for param in spec.params) and not (one.body or {}).get("dedupe_key"):
        assert one.key, "a lost answer would start a second run"


def test_each_call_without_a_key_has_one_of_its_own() -> None:
    start = Api.start
    assert start(None, "w").key != start(None, "w").key
    assert start(None, "w", idempotency_key="mine").key == "mine"
    assert Api.signal(None, "r", "go").key
    assert Api.signal(None, "r", "go", dedupe_key="d").key is None


def test_answers_are_the_types_of_the_routes() -> None:
    for name, method in METHODS:
        hints = typing.get_type_hints(method, localns={"answers": answers})
        (said,) = typing.get_args(hints["return"])
        one = next(found for other, found in CALLS if other == name)
        answer = ROUTES[one.method, one.path].answer
        if one.reads == "object" and said != dict[str, Any]:
            allowed = {getattr(each, "__name__", "") for each in (answer if isinstance(answer, tuple) else (answer,))}
            assert said.__name__ in allowed, name


def test_a_link_or_its_token() -> None:
    assert token_of("http://127.0.0.1:8765/resume/abc.def?x=1") == "abc.def"
    assert token_of("/api/resume/abc%2Edef/") == "abc.def"
    assert token_of("abc.def") == "abc.def"
    assert token_of({"link": "http://x/resume/abc", "title": "Pay?"}) == "abc"
    with pytest.raises(ClientError, match="has no link"):
        token_of({"link": None, "title": "Pay?"})


def test_the_address_and_the_token_are_those_of_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", "http://127.0.0.1:9999/")
    monkeypatch.setenv("WEFT_TOKEN", "a-token")
    assert address(None, None) == ("http://127.0.0.1:9999", "a-token")
    assert address("http://127.0.0.1:1", "") == ("http://127.0.0.1:1", "")
    monkeypatch.delenv("WEFT_URL")
    monkeypatch.setenv("WEFT_PORT", "7777")
    assert address(None, "t")[0] == "http://127.0.0.1:7777"
    with pytest.raises(ClientError, match="not allowed in a token"):
        Client("http://127.0.0.1:1", "two words")
    with pytest.raises(ClientError, match=r"'localhost:8765' is not the address of a server\. It looks like http://"):
        Client("localhost:8765", "")


def test_what_is_raised_says_what_to_do_next() -> None:
    assert str(ApiError(404, {"detail": "there is no x", "hint": "make one"})) == "there is no x make one"
    assert "`weft token` prints" in str(ApiError(401, {"detail": "This needs the server's token."}))
    assert str(ApiError(500, {})) == "The server answered 500."


def test_a_method_reads_like_one() -> None:
    with Client("http://127.0.0.1:1", "") as weft:
        assert weft.get_run.__name__ == "get_run"
        assert list(inspect.signature(weft.get_run).parameters) == ["run", "wait_s"]
        assert "wait_s" in (inspect.getdoc(weft.get_run) or "")


def test_the_client_waits_until_a_run_has_ended_as_the_engine_means_it() -> None:
    assert ENDED == TERMINAL
