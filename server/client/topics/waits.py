"""Waits: the questions of runs, and their answers by link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from server.client.call import Call, call, present
from server.client.errors import ClientError

if TYPE_CHECKING:
    from server.client.answers import CallbackTaken, PublicWait, Wait, WaitPage


# A resume link, its token, or a wait with a link.
Link = str | Mapping[str, Any] | None


class Waits:
    """`/api/waits`, `/api/resume/{token}`, `/callbacks/{token}`."""

    @call
    def waits(
        self,
        *,
        status: str = "pending",
        kind: str | None = None,
        workflow: str | None = None,
        run: str | None = None,
        before: str | None = None,
        limit: int = 200,
        counts: bool = False,
    ) -> Call[WaitPage]:
        """List waits, oldest first; `next` is the `before` of the following page. `counts`: also the number of waits by
        status. The `link` of a pending one answers it."""
        params = present(
            status=status, kind=kind, workflow=workflow, run=run, before=before, limit=limit, counts=counts
        )
        return Call("GET", "/api/waits", params=params)

    @call
    def wait(self, run: str, wait: str) -> Call[Wait]:
        """Return one wait by its id, or the latest of the node with this key."""
        return Call("GET", "/api/runs/{id}/waits/{key}", (run, wait))

    @call
    def withdraw(self, run: str, wait: str, *, by: str | None = None, reason: str = "") -> Call[Wait]:
        """Take a question back; `wait` is its id or the key of the node that waits. ApiError 409: it was over."""
        return Call("DELETE", "/api/runs/{id}/waits/{key}", (run, wait), body=present(by=by, reason=reason))

    @call
    def answer_wait(
        self,
        run: str,
        wait: str,
        action: str | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> Call[Wait]:
        """Answer a wait without its link, once, as the holder of this client's token; `wait` is its id or the key of
        the node that waits. ApiError as in `answer`; 403: it is for others."""
        body = present(action=action, fields=dict(fields or {}), by=by)
        return Call("POST", "/api/runs/{id}/waits/{key}", (run, wait), body=body)

    @call
    def read_link(self, link: Link) -> Call[PublicWait]:
        """Return the question of a resume link, given as the link, its token or its wait. Reading it changes
        nothing."""
        return Call("GET", "/api/resume/{token}", (token_of(link),))

    @call
    def answer(
        self,
        link: Link,
        action: str | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> Call[PublicWait]:
        """Answer a wait by its link, its token, or the wait itself, once. `action` is one of its `actions`. ApiError
        409: already answered. 422: the fields do not fit its form, the wait stays open."""
        body = present(action=action, fields=dict(fields or {}), by=by)
        return Call("POST", "/api/resume/{token}", (token_of(link),), body=body)

    @call
    def call_back(self, link: Link, value: Any) -> Call[CallbackTaken]:
        """Answer the wait of a callback block: any JSON."""
        return Call("POST", "/callbacks/{token}", (token_of(link),), body=value)


def token_of(link: Link) -> str:
    """The last part of the path of a link; a token is itself. Raises ClientError for a wait without a link."""
    if isinstance(link, Mapping):
        link = link.get("link")
    if not link:
        raise ClientError(
            "The wait has no link.", "It was answered or it expired, or the token of this client has the role viewer."
        )
    return unquote(urlsplit(link).path.rstrip("/").rpartition("/")[2])
