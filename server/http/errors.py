"""Every refusal as application/problem+json (RFC 9457): {type, title, status, code, detail, pointer?, hint?,
diagnostics?, ...}. STATUS has the status of every error.

One place turns exceptions into responses: WeftError and CompileError of the engine, Starlette's own 404 and 405, wrong
JSON, and unexpected exceptions (500 without a cause; the cause is in the log)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from compiler.diagnostics import CompileError
from executor import errors

_log = logging.getLogger("weft.server")
PROBLEM_JSON = "application/problem+json"
INTERNAL = "Internal error; see the server log."
_RESERVED = frozenset({"type", "title", "status", "code", "detail", "pointer", "hint", "diagnostics"})


class MalformedBody(errors.BadRequest, code="malformed_json"):
    """The body is not JSON."""


class BodyInvalid(errors.BadRequest, code="body_invalid"):
    """The body has the wrong shape."""


class BodyTooLarge(errors.LimitExceeded, code="body_too_large"):
    """The body is larger than this server allows."""


class BodyTimeout(errors.WeftError, code="body_timeout"):
    """The body did not arrive in time."""


class UnsupportedMedia(errors.WeftError, code="unsupported_media_type"):
    """Writes need the content type application/json."""


class Unauthorized(errors.WeftError, code="unauthorized"):
    """This needs the server's token."""


class Forbidden(errors.WeftError, code="forbidden"):
    """This needs another role."""


class CrossSite(errors.WeftError, code="cross_site"):
    """Requests from other web sites are refused."""


class HeadersTooLarge(errors.WeftError, code="headers_too_large"):
    """The headers are too large."""


class Misdirected(errors.WeftError, code="host_not_allowed"):
    """This server does not serve that host name."""


class PreconditionRequired(errors.WeftError, code="if_match_required"):
    """This needs the header If-Match with the revision that is to be changed."""


class TooManyStreams(errors.WeftError, code="too_many_streams"):
    """Too many event streams are open."""


class TooManyStreamsOfRun(TooManyStreams):
    """Too many event streams of this run are open."""


class TooManyTries(errors.WeftError, code="too_many_tries"):
    """Too many tries; wait a little."""


class Stopping(errors.WeftError, code="server_stopping"):
    """The server stopped before this was answered."""


# A class that is not here has the status of its base.
STATUS: Mapping[type[errors.WeftError], int] = {
    errors.AnswerInvalid: 422,
    errors.BackupUnusable: 400,
    errors.BadRequest: 400,
    errors.BlockError: 502,
    BodyInvalid: 422,
    BodyTimeout: 408,
    errors.Conflict: 409,
    errors.CorruptJournal: 500,
    errors.CronInvalid: 422,
    CrossSite: 403,
    errors.DatabaseFull: 507,
    errors.DeliveryRefused: 401,
    errors.Fenced: 409,
    Forbidden: 403,
    HeadersTooLarge: 431,
    errors.InputInvalid: 422,
    errors.LimitExceeded: 413,
    errors.Lost: 500,
    Misdirected: 421,
    errors.NestedTransaction: 500,
    errors.NoWorkflow: 422,
    errors.NotFound: 404,
    errors.NotYours: 403,
    errors.FileNotYours: 403,
    PreconditionRequired: 428,
    errors.QueryRefused: 400,
    errors.QueueFull: 429,
    errors.SandboxError: 422,
    errors.SignInRequired: 401,
    Stopping: 503,
    errors.StoreError: 503,
    TooManyStreams: 503,
    TooManyStreamsOfRun: 429,
    TooManyTries: 429,
    Unauthorized: 401,
    errors.Unheard: 409,
    UnsupportedMedia: 415,
    errors.WebhookDisabled: 410,
    errors.WebhookNotReady: 503,
    errors.ZoneUnknown: 422,
}


def status_of(error: errors.WeftError) -> int:
    """Return the HTTP status of an error; 500 for an unknown class."""
    return next((STATUS[base] for base in type(error).__mro__ if base in STATUS), 500)


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


def problem_of(error: errors.WeftError) -> Response:
    """Return an error as a problem response (RFC 9457), with the status of its class."""
    headers, status = {}, status_of(error)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        headers["Retry-After"] = str(error.extra.get("retry_after_s", 5))
    detail = error.message if status != 500 else INTERNAL
    return problem(
        status, error.code, detail, pointer=error.pointer, hint=error.hint, extra=error.extra, headers=headers
    )


def problem_of_document(error: CompileError) -> Response:
    """422 with every finding, warnings included; `pointer` is the first error's."""
    first = next((d for d in error.diagnostics if d.severity == "error"), error.diagnostics[0])
    return problem(
        422,
        "document_invalid",
        error.message,
        pointer=first.pointer,
        hint=first.hint,
        extra={"diagnostics": list(error.diagnostics)},
    )


def answer_to(error: Exception, method: str, path: str) -> Response | None:
    """Return the answer to a request that failed with `error`, or None if the error is not one that is expected."""
    match error:
        case errors.WeftError():
            if status_of(error) == 500:
                _log.error("%s %s failed", method, path, exc_info=error)
            return problem_of(error)
        case CompileError():
            return problem_of_document(error)
        case HTTPException(status_code=404):
            return problem(404, "no_such_route", f"{path} does not exist.", headers=error.headers)
        case HTTPException(status_code=405):
            detail = f"{method} is not supported at {path}."
            return problem(405, "method_not_allowed", detail, headers=error.headers)
        case HTTPException(status_code=status):
            return problem(status, f"http_{status}", error.detail, headers=error.headers)
    return None


def unexpected() -> Response:
    """The answer to a request that failed with any other error; the cause is in the log."""
    return problem(500, "internal_error", INTERNAL)


def only_post(hint: str) -> Response:
    """The answer to a GET of an address with a credential in it: the same for each, so that it reveals nothing."""
    detail = "This URL accepts only POST requests from programs."
    return problem(405, "method_not_allowed", detail, hint=hint, headers={"Allow": "POST"})


def phrase(status: int) -> str:
    """The reason phrase of a status: `Not Found`."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
