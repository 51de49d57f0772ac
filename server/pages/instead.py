"""Pages shown to visitors in place of a form or chat that cannot be used."""

from __future__ import annotations

from typing import Literal

from starlette.responses import Response

from executor.errors import NotFound, WebhookDisabled, WebhookNotReady, WeftError
from server.pages.html import Html, el, page

Kind = Literal["form", "chat"]
_SENT = {"form": "submissions", "chat": "messages"}


def instead(error: WeftError, kind: Kind) -> Response:
    """404: nothing has this address; 410: it is switched off; 503: its workflow cannot start now. Raises any other."""
    match error:
        case NotFound():
            return _page(
                404, "Unknown link", "The link may be incomplete or out of date. Ask the sender for a new one."
            )
        case WebhookDisabled():
            text = f"It does not accept {_SENT[kind]}."
            return _page(410, f"{kind.title()} closed", text, f"This {kind} is closed")
        case WebhookNotReady():
            return _page(503, f"{kind.title()} not available", "Try again later.", f"This {kind} is not available")
        case _:
            raise error


def read_only() -> Html:
    """In place of the form of a page, on a server that changes nothing."""
    return el("p", "This server is read-only: it accepts nothing.", class_="notice off", role="status")


def _page(status: int, title: str, text: str, heading: str = "") -> Response:
    return page(title, el("h1", heading or title), el("p", text), status=status, chrome=False)
