"""What holds for every answer, beside what schemathesis looks for by itself; and how its requests are made to meet
something: random names alone would see nothing but 404."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.failures import Failure
from schemathesis.openapi.checks import EnsureResourceAvailability, UseAfterFree

from tests.fuzz.api.world import CONNECTION, DOCUMENTS, World
from tests.support.documents import connector

# Said of a request that has the wrong shape. One that openapi.json calls right must not be told so.
SHAPE = {
    "bad_cursor",
    "bad_request",
    "body_invalid",
    "id_invalid",
    "idempotency_key_invalid",
    "if_match_invalid",
    "if_match_required",
    "malformed_json",
    "unsupported_media_type",
}

# Ids of runs, waits and drafts.
_MADE = re.compile(r"[0-9a-f]{16}([0-9a-f]{16})?")


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
def what_is_documented_is_accepted(ctx: CheckContext, response: Response, case: Case) -> None:
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code in (400, 415, 422, 428):
        problem = response.json()
        assert problem["code"] not in SHAPE, f"{problem['code']}: {problem['detail']} {problem.get('pointer', '')}"


def meet(world: World) -> Callable[..., Case]:
    """A hook: most names become names of what exists, most documents such as compile, most answers such as fit. Which
    ones hangs on what was drawn, so the same requests are made each time. Ids that the server made stay as they are:
    an answer before held them."""

    def map_case(context: HookContext, case: Case) -> Case:
        path = case.operation.path
        right = case.meta is None or case.meta.generation.mode.is_positive
        for name, value in dict(case.path_parameters).items():
            known = world.values(case.operation.label, name)
            if known and value not in known and not _MADE.fullmatch(str(value)) and (n := _number(value)) % 4:
                case.path_parameters[name] = known[n % len(known)]
        if path.endswith("/events") and case.path_parameters.get("id") not in world.ended:
            case.headers["Accept"] = "application/json"  # a stream of an open run would not end
        if path == "/api/knowledge/{collection}/documents" and "name" in case.query and right:
            case.query["name"] = "book"
        if path == "/demo/echo":  # it fails and waits on request
            case.query.update({name: 0 for name in ("fail", "delay_ms") if str(case.query.get(name)).isdecimal()})
        if not right:
            _be_wrong(case)
        elif revision := case.headers.get("If-Match"):
            # Among values at bounds schemathesis has none with quotes for a header, whatever its pattern wants.
            case.headers["If-Match"] = '"1"' if revision == "0" or _number(revision) % 2 else revision
        if isinstance(case.body, dict):
            case.body = _body(world, path, _whole(case.body), right)
        return case

    return map_case


def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """A question that was taken back can still be looked at. A name that `meet` has put in place of a new one may be
    gone."""
    path = case.operation.path
    gone = isinstance(failure, EnsureResourceAvailability) and not _MADE.search(case.formatted_path)
    return not gone and not (isinstance(failure, UseAfterFree) and path.startswith("/api/runs/{id}/waits/"))


def _be_wrong(case: Case) -> None:
    """What is left on the wire of an empty list or object in place of a number is no mistake: an empty parameter counts
    as absent."""
    for parameter in case.operation.definition.raw.get("parameters", []):
        given = {"query": case.query, "header": case.headers}.get(parameter["in"], {})
        name = parameter["name"]
        if name in given and parameter["schema"].get("type") in ("integer", "number"):
            given[name] = given[name] if given[name] not in ({}, [], "", None) else "none"


def _body(world: World, path: str, body: dict[str, Any], right: bool) -> dict[str, Any]:
    n = _number(body)
    if not n % 4:
        return body
    known = DOCUMENTS[n % len(DOCUMENTS)]
    if path in ("/api/validate", "/api/workflows") and "document" not in body:
        return known
    if right:
        body = {**body, **_fitting(world, path)}
    if path == "/api/connectors/{service}":
        return body
    return {**body, "document": known} if isinstance(body.get("document"), dict) else body


def _fitting(world: World, path: str) -> dict[str, Any]:
    """Members of right bodies that only fit when they name what there is."""
    ending = {"workflow": "ending", "version": 1, "trigger": None}
    match path:
        case "/api/runs/{id}/migrate":
            return {"version": world.version}
        case "/api/connectors/openapi":
            return {"description": {"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}, "operations": []}
        case "/api/runs/{id}/rerun":
            return {"from": None, "version": None, "draft": None, "again": []}
        case "/api/runs/{id}/fork":
            return {"seq": 1, "outputs": {}, "steps": {}, "params": {}}
        case "/mcp":
            return {"id": 1, "method": "tools/call", "params": {"name": "waits", "arguments": {}}}
        case "/api/connectors/{service}":
            return {"document": connector("tea")}
        case "/api/secrets/{name}":
            return {"value": "a value that is long enough", "hosts": []}
        case "/api/connections/{name}":
            return CONNECTION
        case "/api/connections/{name}/test":
            return {"service": "", "base_url": "", "connection": CONNECTION}
        case "/api/blocks/{type}/choices":
            return {"field": "channel", "params": {"credential": "x"}}
        case "/api/knowledge":
            return {"name": "made", "model": "local:m", "chunk_chars": 1_000, "overlap_chars": 100}
        case "/api/knowledge/{collection}/documents":
            return {"name": "book", "text": "Another text.", "data": None, "media_type": ""}
        case "/api/knowledge/{collection}/search":
            return {"mode": "text"}
        case "/api/mcp/check":
            return {"url": "http://127.0.0.1:9/mcp", "headers": {}}
        case "/api/schedules/{id}":
            return {**ending, "cron": "0 9 * * MON-FRI", "tz": "UTC"}
        case "/api/webhooks/{id}":
            return {**ending, "headers": [], "secret_env": None}
        case "/resume/{token}" | "/api/resume/{token}" | "/api/runs/{id}/waits/{key}":
            return {"action": "yes", "fields": {}}
    return {}


def _whole(value: Any) -> Any:
    """JSON Schema takes 1.0 for an integer, but clients do not write one so."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _number(value: Any) -> int:
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))
