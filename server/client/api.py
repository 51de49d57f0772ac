"""The parts that both clients share: every call of the API, the address of the server, and how they wait for a run."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from server.client.call import Call, new_key
from server.client.errors import ClientError, RunFailed
from server.client.history_calls import HistoryCalls
from server.client.run_calls import RunCalls
from server.client.server_calls import ServerCalls
from server.reach import DEFAULT_URL, SettingsError, find, is_address, is_token, server_url

if TYPE_CHECKING:
    from server.client.answers import RunDetail, WaitView

LOOK_S = 20.0  # of one request that waits: proxies close connections that are silent for longer
AGAIN_FIRST_S, AGAIN_MAX_S = 0.5, 10.0
ENDED = frozenset({"succeeded", "failed", "cancelled"})


class Api(RunCalls, HistoryCalls, ServerCalls):
    """The calls of docs/reference/http-api.md. Answers are its JSON as dicts, whose types are in
    `server.client.answers`."""


def address(url: str | None, token: str | None) -> tuple[str, str]:
    """Return the address of the server and the token to send ("" for none). Arguments that are None come from WEFT_URL
    and WEFT_TOKEN, as for commands. Raises ClientError."""
    url = server_url(os.environ) if url is None else url
    if not is_address(url):
        raise ClientError(f"{url!r} is not the address of a server.", f"It looks like {DEFAULT_URL}.")
    try:
        token = (find(os.environ, url) or "") if token is None else token
    except SettingsError as error:
        raise ClientError(f"{error}") from None
    if token and not is_token(token):
        raise ClientError(
            "The token contains characters that are not allowed in a token.", "Set it to what `weft token` prints."
        )
    return url.rstrip("/"), token


def standing(run: Mapping[str, Any]) -> bool:
    """Return whether only an answer or a signal can move the run: no timer is set, no retry is due, no child works, and
    no answer or signal is still to be processed."""
    if run["status"] != "waiting" or run.get("children_active") or run.get("unread"):
        return False
    pending = [wait for wait in open_waits(run) if wait["status"] == "pending"]
    retrying = any(node["status"] == "retrying" for node in run.get("nodes", []))
    return bool(pending) and not retrying and all(wait["kind"] != "timer" for wait in pending)


def open_waits(run: Mapping[str, Any]) -> list[WaitView]:
    """The open waits of the run and of the runs below; a wait for a child is replaced by the child's own waits."""
    below: list[WaitView] = run.get("child_waits", [])
    return [wait for wait in run.get("waits", []) if wait["kind"] != "child" or not below] + below


class Asked(Protocol):
    """A query or an update of a durable function, as its program has it."""

    @property
    def name(self) -> str: ...

    def given(self, *args: Any, **kwargs: Any) -> Any: ...

    def read(self, answer: Any) -> Any: ...


def until_answered(
    run: str, update: str | Asked, value: Any, id: str | None, by: str | None, seconds: float | None
) -> Generator[Call[Any] | float, Any, Any]:
    """Yield the next call until the update is answered, and return the answer. Raises TimeoutError."""
    name, given = (update, value) if isinstance(update, str) else (update.name, update.given(value))
    until_s = float("inf") if seconds is None else time.monotonic() + seconds
    id = id or new_key()
    while True:
        wait_s = max(0.0, min(LOOK_S, until_s - time.monotonic()))
        found = yield RunCalls.send_update(None, run, name, given, id=id, by=by, wait_s=round(wait_s, 3))
        if found["answered"]:
            return found["answer"] if isinstance(update, str) else update.read(found["answer"])
        if time.monotonic() >= until_s:
            raise TimeoutError(f"run {run} has not answered update {name} in time; id={id!r} asks for its answer again")


def querying(
    query: str | Asked, run: str, args: Sequence[Any], arguments: Mapping[str, Any]
) -> Generator[Call[Any] | float, Any, Any]:
    """Yield the call of a query, and return the answer."""
    if isinstance(query, str):
        return (yield RunCalls.send_query(None, run, query, arguments))["answer"]
    found = yield RunCalls.send_query(None, run, query.name, query.given(*args, **arguments))
    return query.read(found["answer"])


def until_standing(run: str, timeout_s: float | None) -> Generator[Call[Any] | float, Any, RunDetail]:
    """Yield the next call, or the seconds to pause, until the run has ended, only an answer or a signal can move it, or
    the time is up. Returns the run. Raises RunFailed."""
    until_s = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    pause_s = AGAIN_FIRST_S
    while True:
        began_s = time.monotonic()
        wait_s = max(0.0, min(LOOK_S, until_s - began_s))
        view = cast("RunDetail", (yield RunCalls.get_run(None, run, wait_s=round(wait_s, 3))))
        if view["status"] in ENDED:
            if view["status"] != "succeeded":
                raise RunFailed(view)
            return view
        left_s = until_s - time.monotonic()
        if left_s <= 0 or standing(view):
            return view
        if time.monotonic() - began_s < AGAIN_FIRST_S:  # it waits for a time that is far off
            yield min(pause_s, left_s)
            pause_s = min(2 * pause_s, AGAIN_MAX_S)
