"""Routes without variables are found in one look; all else is as Starlette routes it. A route is described by the
annotations of its handler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from server.app import create_app
from server.http.response import Json
from server.http.table import Routes, RouteSpec
from server.settings import Settings


@pytest.fixture
def routes(tmp_path: Path) -> Sequence[BaseRoute]:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", token="t" * 40)
    return create_app(settings).routes


def scope_of(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method, "root_path": "", **more}


def test_a_constant_path_finds_the_route_that_it_had_before(routes: Sequence[BaseRoute]) -> None:
    constant, *others = routes
    own = [route for route in others if isinstance(route, Route) and "{" not in route.path]
    assert len(own) > 20
    for route in own:
        for method in route.methods or ():
            scope = scope_of(route.path, method)
            first = next(other for other in others if other.matches(scope)[0] is Match.FULL)
            assert first is route
            assert constant.matches(scope) == route.matches(scope)
        assert constant.matches(scope_of(route.path, "BREW"))[0] is Match.PARTIAL


def test_other_paths_are_not_its_own(routes: Sequence[BaseRoute]) -> None:
    constant = routes[0]
    for path in ("/api/runs/1", "/api/runs/", "/static/weft.css", "/nothing", ""):
        assert constant.matches(scope_of(path))[0] is Match.NONE
    assert constant.matches(scope_of("/api/runs"))[0] is Match.FULL
    assert constant.matches(scope_of("/sub/api/runs", root_path="/sub"))[0] is Match.NONE
    assert constant.matches({"type": "lifespan"})[0] is Match.NONE


class Size(Struct):
    width: int = 1


class Name(Struct):
    name: str


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
