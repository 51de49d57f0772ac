"""Every refusal as application/problem+json (RFC 9457): {type, title, status, code, detail, pointer?, hint?,
diagnostics?, ...}.

One place turns exceptions into responses: WeftError and CompileError of the engine, Starlette's own 404 and 405, wrong
JSON, and whatever was not expected (500, without a word about its cause; the log has it)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from compiler.diagnostics import CompileError
from executor.errors import BadRequest, LimitExceeded, WeftError

_log = logging.getLogger("weft.server")
PROBLEM_JSON = "application/problem+json"
_RESERVED = frozenset({"type", "title", "status", "code", "detail", "pointer", "hint", "diagnostics"})


class MalformedBody(BadRequest):
    """The body is not JSON."""

    code = "malformed_json"


class BodyInvalid(BadRequest):
    """The body has the wrong shape."""

    code = "body_invalid"
    status = 422


class BodyTooLarge(LimitExceeded):
    """The body is larger than this server allows."""

    code = "body_too_large"


class BodyTimeout(WeftError):
    """The body did not arrive in time."""

    code = "body_timeout"
    status = 408


class UnsupportedMedia(WeftError):
    """Writes need the content type application/json."""

    code = "unsupported_media_type"
    status = 415


class Unauthorized(WeftError):
    """This needs the server's token."""

    code = "unauthorized"
    status = 401


class CrossSite(WeftError):
    """Requests from other web sites are refused."""

    code = "cross_site"
    status = 403


class Misdirected(WeftError):
    """This server does not serve that host name."""

    code = "host_not_allowed"
    status = 421


class PreconditionRequired(WeftError):
    """This needs the header If-Match with the revision that is to be changed."""

    code = "if_match_required"
    status = 428


class TooManyStreams(WeftError):
    """Too many event streams are open."""

    code = "too_many_streams"
    status = 503


class Stopping(WeftError):
    """The server stopped before this was answered."""

    code = "server_stopping"
    status = 503


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    pointer: str | None = None,
    hint: str = "",
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """One problem response. `extra` adds members but never replaces the standard ones."""
    body: dict[str, Any] = {
        "type": f"urn:weft:problem:{code}",
        "title": phrase(status),
        "status": status,
        "code": code,
        "detail": detail,
    }
    if pointer is not None:
        body["pointer"] = pointer
    if hint:
        body["hint"] = hint
    for name, value in (extra or {}).items():
        if name not in _RESERVED or name == "diagnostics":
            body[name] = value
    data = orjson.dumps(msgspec.to_builtins(body), option=orjson.OPT_NON_STR_KEYS)
    return Response(data, status, headers, media_type=PROBLEM_JSON)


def problem_of(error: WeftError) -> Response:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (429, 503):
        headers["Retry-After"] = str(error.extra.get("retry_after_s", 5))
    detail = error.message if error.status != 500 else "Internal error; see the server log."
    return problem(
        error.status, error.code, detail, pointer=error.pointer, hint=error.hint, extra=error.extra, headers=headers
    )


def problem_of_document(error: CompileError) -> Response:
    """422 with every finding, warnings included; `pointer` is the first error's."""
    first = next((d for d in error.diagnostics if d.severity == "error"), error.diagnostics[0])
    return problem(
        422,
        "document_invalid",
        str(error),
        pointer=first.pointer,
        hint=first.hint,
        extra={"diagnostics": list(error.diagnostics)},
    )


def install(app: Starlette) -> None:
    """Register the handlers."""
    app.add_exception_handler(WeftError, _on_weft_error)
    app.add_exception_handler(CompileError, _on_compile_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_exception)


async def _on_weft_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, WeftError)
    if error.status == 500:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_of(error)


async def _on_compile_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CompileError)
    return problem_of_document(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "no_such_route", 405: "method_not_allowed"}.get(error.status_code, f"http_{error.status_code}")
    detail = {
        404: f"{request.url.path} does not exist.",
        405: f"{request.method} is not supported at {request.url.path}.",
    }.get(error.status_code, error.detail)
    return problem(error.status_code, code, detail, headers=error.headers)


async def _on_exception(request: Request, error: Exception) -> Response:
    return problem(500, "internal_error", "Internal error; see the server log.")


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
