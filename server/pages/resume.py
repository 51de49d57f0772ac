"""The page of a resume link: the question, the form, the buttons; or who answered, or that it is too late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from executor.service.views import WaitView
from server.pages import html as instead
from server.pages.forms import encoding_of, form_fields, schema_fields
from server.pages.html import Html, el, join, markup, moment, page, value_view
from server.ui import Extras

_LOST: dict[str | None, str] = {"retry": "Run it again", "done": "Mark as done", "fail": "Mark as failed"}

# Members of an answer besides the fields; the page shows them in words elsewhere.
_SAID = ("action", "answered_by", "answered_at")

_NAME = """<div class="field"><label for="by">Your name<span class="quiet"> (optional)</span></label>
<input type="text" name="by" id="by" autocomplete="name" maxlength="200" value="{}"></div>"""


def ask(
    wait: WaitView,
    *,
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    error: str | None = None,
    extras: Extras | None = None,
    read_only: bool = False,
) -> Response:
    """The question. With `error` or `errors` the answer did not fit and what was typed is kept (422). `extras`: what
    the interface adds; the page works without."""
    errors = errors or {}
    wrong = bool(errors or error)
    trouble = el("p", error or "Check the marked fields.", class_="notice err", role="alert") if wrong else None
    name = markup(_NAME, (typed or {}).get("by"))
    form = el(
        "form",
        form_fields(wait.schema, typed, errors),
        name,
        el("div", *_buttons(wait), class_="actions"),
        method="post",
        enctype=encoding_of(wait.schema),
    )
    once = el("p", "This link accepts one answer. Opening it changes nothing.", class_="quiet once")
    return page(
        _title(wait),
        el("p", wait.workflow, class_="eyebrow"),
        el("h1", _title(wait)),
        _facts(wait),
        trouble,
        _asked(wait),
        *((instead.read_only(),) if read_only else (form, once)),
        status=422 if wrong else 200,
        chrome=False,
        extras=extras,
    )


def thanks(wait: WaitView, action: str | None, extras: Extras | None = None) -> Response:
    answer = f"answer “{_words(action)}”" if action else "answer"
    said = f"Thank you. Your {answer} was recorded."
    return _closed(wait, said, 200, extras)


def closed(wait: WaitView, status: int, extras: Extras | None = None) -> Response:
    """The wait is over: answered (by whom and when), expired, or cancelled. The same page for a GET (200) and a late
    answer (409)."""
    if wait.status == "answered":
        who = f"answered by {wait.answered_by}" if wait.answered_by else "answered"
        return _closed(wait, f"This was already {who}.", status, extras)
    if wait.status == "expired":
        return _closed(wait, "This question has expired.", status, extras)
    return _closed(wait, "This question was withdrawn because the run ended.", status, extras)


def unknown() -> Response:
    """The page for a token that no wait has (404)."""
    return page(
        "Unknown link",
        el("h1", "Unknown link"),
        el("p", "The link may be incomplete or belong to another server. Ask the sender for a new one."),
        status=404,
        chrome=False,
    )


def _closed(wait: WaitView, said: str, status: int, extras: Extras | None) -> Response:
    answer = wait.response if isinstance(wait.response, dict) else None
    shown = {_label(wait.schema, name): value for name, value in (answer or {}).items() if name not in _SAID}
    if action := (answer or {}).get("action"):
        shown = {"Answer": _words(str(action)), **shown}
    details = join(
        el("p", "Recorded ", moment(wait.answered_at_ms), ".", class_="quiet") if wait.answered_at_ms else None,
        value_view(shown) if shown else None,
    )
    return page(
        _title(wait),
        el("p", wait.workflow, class_="eyebrow"),
        el("h1", _title(wait)),
        el("p", said, class_="notice" if wait.status == "answered" else "notice off", role="status"),
        details,
        status=status,
        chrome=False,
        extras=extras,
    )


def _facts(wait: WaitView) -> Html:
    who = wait.workflow if wait.label == _title(wait) else f"{wait.workflow}, {wait.label}"
    rows: list[tuple[str, Any]] = [("Asked by", who), ("Asked", moment(wait.opened_at_ms))]
    if wait.expires_at_ms:
        rows.append(("Expires", moment(wait.expires_at_ms)))
    return el("dl", *[el("div", el("dt", name), el("dd", value)) for name, value in rows], class_="facts")


def _label(schema: Any, name: str) -> str:
    return str(schema_fields(schema).get(name, {}).get("title") or name)


def _title(wait: WaitView) -> str:
    return wait.title or wait.label or wait.block


def _asked(wait: WaitView) -> Html:
    """Text, then the shown data, then whatever else the request holds."""
    request = wait.request if isinstance(wait.request, dict) else {}
    texts = [request[name] for name in ("text", "description", "message") if isinstance(request.get(name), str)]
    shown = request.get("show")
    return join(
        [el("p", text, class_="text") for text in texts],
        el("section", value_view(shown), class_="shown", aria_label="Details")
        if shown not in (None, {}, [], "")
        else None,
    )


def _buttons(wait: WaitView) -> list[Html]:
    actions: list[Any] = list(wait.actions) or [None]
    request = wait.request if isinstance(wait.request, dict) else {}
    # A lost attempt has no usual answer, so each button names its effect.
    words = _LOST if wait.kind == "attention" else {None: str(request.get("submit") or "Send")}
    return [
        el(
            "button",
            words.get(action) or _words(action),
            type="submit",
            name="action" if action else None,
            value=action,
            class_="primary" if position == 0 and wait.kind != "attention" else None,
        )
        for position, action in enumerate(actions)
    ]


def _words(action: str) -> str:
    """`ask_again` -> `Ask again`."""
    words = action.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] if words else action
