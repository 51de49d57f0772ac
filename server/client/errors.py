"""Errors of the client. Each has the next step in `hint`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

if TYPE_CHECKING:
    from server.client.answers import RunDetail


_REFUSED = "Pass token=, or set WEFT_TOKEN, to what `weft token` prints where the server runs."


class ClientError(Exception):
    """An error for the user. `hint` is the next step, or empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} {hint}".rstrip())


class ServerUnreachable(ClientError):
    """There was no answer, or none of a weft server."""


class ApiError(ClientError):
    """The server refused the call.

    `status` is that of HTTP, `code` is stable and meant for programs, `pointer` is the place of the fault in the body
    (RFC 6901, or empty), `diagnostics` are the findings about a document. `problem` is the whole
    application/problem+json body, `{}` when there was none."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", f"http_{status}"))
        self.pointer = str(problem.get("pointer") or "")
        self.diagnostics: list[dict[str, Any]] = list(problem.get("diagnostics") or [])
        hint = str(problem.get("hint") or (_REFUSED if status == 401 else ""))
        super().__init__(str(problem.get("detail") or f"The server answered {status}."), hint)


class RunFailed(ClientError):
    """A run that `run` or `wait_for` waited for has failed, or was cancelled. `run` is how it ended."""

    def __init__(self, run: RunDetail) -> None:
        self.run = run
        error = run["error"] or {}
        self.code = str(error.get("code", run["status"]))
        said = str(error.get("message") or "")
        super().__init__(
            f"The run {run['id']} {'was cancelled' if run['status'] == 'cancelled' else 'failed'}"
            f"{': ' + said if said else ''}",
            str(error.get("hint") or ""),
        )


def refusal(response: httpx.Response) -> ApiError:
    """Return the error for a response of status 400 or above, whose body was read."""
    try:
        problem = msgspec.json.decode(response.content)
    except ValueError:  # neither JSON nor UTF-8
        problem = {}
    return ApiError(response.status_code, problem if isinstance(problem, dict) else {})


def unreachable(url: str, error: httpx.TransportError) -> ServerUnreachable:
    """Return the error for a connection that could not be made, or was lost."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ServerUnreachable(
            f"No weft server answers at {url}.", "Start one with `weft serve`, or set WEFT_URL to where it runs."
        )
    if isinstance(error, httpx.TimeoutException):
        return ServerUnreachable(
            f"The server at {url} takes too long to answer.", "Try again. /healthz shows the state of the server."
        )
    return ServerUnreachable(
        f"The connection to {url} was lost ({type(error).__name__}).",
        "Check that the server is running and that the address is that of a weft server.",
    )


def not_weft(url: str) -> ServerUnreachable:
    """Something else answers there."""
    return ServerUnreachable(
        f"The server at {url} is not a weft server.", "Set WEFT_URL to the address that `weft serve` prints."
    )
