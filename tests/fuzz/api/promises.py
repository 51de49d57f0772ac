"""What holds for every answer, beside what schemathesis looks for by itself; and how its requests are made to meet
something: random names alone would see nothing but 404."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.failures import Failure
from schemathesis.openapi.checks import UseAfterFree

from tests.fuzz.api.world import DOCUMENTS, World

# Said of a request that has the wrong shape. One that openapi.json calls right must not be told so.
SHAPE = {
    "bad_cursor",
    "bad_request",
    "body_invalid",
    "idempotency_key_invalid",
    "if_match_invalid",
    "if_match_required",
    "malformed_json",
    "unsupported_media_type",
}


@schemathesis.check
def errors_are_problems(ctx: CheckContext, response: Response, case: Case) -> None:
    if response.status_code < 400:
        return
    (media,) = response.headers["content-type"]
    if media.startswith("text/html"):
        assert case.operation.path == "/resume/{token}", "a page where a problem belongs"
        return
    assert media == "application/problem+json", media
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["code"] and problem["title"] and problem["detail"]
    assert problem.get("pointer", "")[:1] in ("", "/"), problem["pointer"]
    assert "Traceback" not in response.text


@schemathesis.check
def statuses_are_documented(ctx: CheckContext, response: Response, case: Case) -> None:
    """One by one: `default` is for what a proxy or the guard says."""
    documented = {*case.operation.definition.raw["responses"], "405", "421", "431"}
    assert str(response.status_code) in documented, f"{response.status_code} is none of {sorted(documented)}"


@schemathesis.check
def what_is_documented_is_taken(ctx: CheckContext, response: Response, case: Case) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code in (400, 415, 422, 428):
        problem = response.json()
        assert problem["code"] not in SHAPE, f"{problem['code']}: {problem['detail']} {problem.get('pointer', '')}"


def meet(world: World, names: bool = True) -> Callable[..., Case]:
    """A hook: most names become names of what exists, most documents such as compile. Which ones hangs on what was
    drawn, so the same requests are made each time. Without `names` only tokens do, which no answer holds by itself."""

    def map_case(context: HookContext, case: Case) -> Case:
        path = case.operation.path
        if case.meta is not None and case.meta.generation.mode.is_negative:
            # What an address shows of an empty list or object is no mistake: an empty parameter counts as absent.
            for name in _numbers(case) & case.query.keys():
                case.query[name] = case.query[name] if case.query[name] not in ({}, [], "", None) else "none"
        for name, value in dict(case.path_parameters).items():
            known = world.values(path, name) if names or name == "token" else []
            if known and value not in known and (n := _number(value)) % 4:
                case.path_parameters[name] = known[n % len(known)]
        if path.endswith("/events") and case.path_parameters.get("id") not in world.ended:
            case.headers["Accept"] = "application/json"  # a stream of an open run would not end
        if path == "/demo/echo":  # it fails and waits as it is told to
            case.query.update({name: 0 for name in ("fail", "delay_ms") if str(case.query.get(name)).isdecimal()})
        if "If-Match" in case.headers and _number(case.headers["If-Match"]) % 2:
            case.headers["If-Match"] = '"1"'
        if isinstance(case.body, dict):
            case.body = _body(path, _whole(case.body))
        return case

    return map_case


def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """A question that was taken back can still be looked at."""
    return not (isinstance(failure, UseAfterFree) and case.operation.path.startswith("/api/runs/{id}/waits/"))


def _numbers(case: Case) -> set[str]:
    parameters = case.operation.definition.raw.get("parameters", [])
    return {p["name"] for p in parameters if p["schema"].get("type") in ("integer", "number") and p["in"] == "query"}


def _body(path: str, body: dict[str, Any]) -> dict[str, Any]:
    n = _number(body)
    if not n % 4:
        return body
    known = DOCUMENTS[n % len(DOCUMENTS)]
    if path in ("/api/validate", "/api/workflows") and "document" not in body:
        return known
    return {**body, "document": known} if isinstance(body.get("document"), dict) else body


def _whole(value: Any) -> Any:
    """JSON Schema takes 1.0 for an integer, but nobody writes one so."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _number(value: Any) -> int:
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))
