"""A request finds the route that Starlette would find, in one look. A route is described by the annotations of its
handler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from starlette.responses import Response
from starlette.routing import Match

from server.api import table_of
from server.http.response import Json
from server.http.table import Routes, RouteSpec, Table
from server.settings import Settings


@pytest.fixture
def table(tmp_path: Path) -> Table:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", token="t" * 40)
    return Table(table_of(settings))


def scope_of(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method, "root_path": "", **more}


@pytest.mark.parametrize("value", ["a", "send@review#5/fan[2]", "runs", "a b\u00e9", "x\n"])
def test_a_path_finds_the_route_that_starlette_finds(table: Table, value: str) -> None:
    methods = {method for route in table.routes for method in route.methods or ()} | {"BREW"}
    paths = [route.path for route in table.routes]
    found = 0
    for path in paths:
        while "{" in path:
            before, _, after = path.partition("{")
            path = before + value + after.partition("}")[2]
        for method in methods:
            scope = scope_of(path, method)
            matches = ((route, *route.matches(scope)) for route in table.routes)
            first = next(((route, child) for route, match, child in matches if match is Match.FULL), None)
            own = table.find(scope)
            if own is not None:
                found += 1
                assert first is not None
                assert (own[0], own[1]) == (
                    first[0].specs["GET" if method == "HEAD" else method],
                    first[1]["path_params"],
                )
            elif first is not None:  # it is left to Starlette, as another route has this path, with other methods
                assert sum(route.matches(scope)[0] is not Match.NONE for route in table.routes) > 1
    assert found > 80


def test_other_paths_are_left_to_the_router(table: Table) -> None:
    for path in ("/api/runs/", "/static/weft.css", "/nothing", "", "/api//runs"):
        assert table.find(scope_of(path)) is None
    assert table.find(scope_of("/api/runs")) is not None
    assert table.find(scope_of("/api/runs", "BREW")) is None
    assert table.find(scope_of("/sub/api/runs", root_path="/sub")) is None


class Size(Struct):
    width: int = 1


class Name(Struct):
    name: str


def test_a_path_without_variables_comes_before_those_that_match_it_too(table: Table) -> None:
    """So a wrong method is refused with the methods of that path, not with those of `/api/connectors/{name}`."""
    scope = scope_of("/api/connectors/openapi", "BREW")
    first = next(route for route in table.routes if route.matches(scope)[0] is not Match.NONE)
    assert (first.path, first.methods) == ("/api/connectors/openapi", {"POST"})


def test_a_handler_names_what_it_is_given_and_returns() -> None:
    route = Routes("things", RouteSpec)

    @route("PUT", "/things/{id}", "Put")
    async def put(call: object, id: str, query: Size, body: Name) -> Json[Name]:
        return Json(body)

    @route("GET", "/things/{id}", "Get")
    async def get(call: object) -> Name | Size | Response:
        return Size()

    @route("GET", "/page", "Page", answer=Name)
    async def page(call: object) -> Response:
        return Response()

    first, second, third = route.table
    assert (first.query, first.body, first.answer, first.given) == (Size, Name, Name, ("id", "query", "body"))
    assert (second.query, second.body, second.answer, second.given) == (None, None, (Name, Size), ())
    assert (third.answer, third.tag) == (Name, "things")


def test_a_parameter_that_the_path_has_not_is_an_error() -> None:
    route = Routes("things", RouteSpec)
    with pytest.raises(AssertionError, match=r"GET /things/\{id\} has no \['key'\]"):

        @route("GET", "/things/{id}", "Get")
        async def get(call: object, key: str) -> Name:
            return Name(key)
