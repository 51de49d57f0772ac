"""The page of a resume link: the question, the form, the buttons; or who answered, or that it is too late."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from executor.service.topics.waits import Background
from executor.service.views import WaitView
from server.pages import html as instead
from server.pages.forms import encoding_of, form_fields, schema_fields
from server.pages.html import Html, as_words, el, join, markup, moment, page, value_view
from server.ui import Extras

_LOST: dict[str | None, str] = {"retry": "Run it again", "done": "Mark as done", "fail": "Mark as failed"}

# Members of an answer besides the fields; the page shows them in words elsewhere.
_SAID = ("action", "answered_by", "answered_at")

_NAME = """<div class="field"><label for="by">Your name<span class="quiet"> (optional)</span></label>
<input type="text" name="by" id="by" autocomplete="name" maxlength="200" value="{}"></div>"""


def ask(
    wait: WaitView,
    background: Background,
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
        el("div", *_buttons(wait, background), class_="answers"),
        method="post",
        enctype=encoding_of(wait.schema),
    )
    return page(
        _title(wait),
        _asker(wait, background),
        el("h1", _title(wait)),
        trouble,
        _asked(wait),
        instead.read_only() if read_only else form,
        _foot(wait, background),
        status=422 if wrong else 200,
        frame="letter",
        aside=_way(wait, background),
        extras=extras,
    )


def thanks(wait: WaitView, action: str | None, extras: Extras | None = None) -> Response:
    answer = f"answer “{as_words(action)}”" if action else "answer"
    said = f"Thank you. Your {answer} was recorded."
    return _closed(wait, said, 200, extras)


def closed(wait: WaitView, status: int, extras: Extras | None = None, late: str | None = None) -> Response:
    """The wait is over: answered (by whom and when), expired, or cancelled. The page of a GET (200), and of an answer
    that came too late (409): `late` is the button that was pressed."""
    if wait.status == "answered":
        who = f"answered by {wait.answered_by}" if wait.answered_by else "answered"
        lost = f" Your answer “{as_words(late)}” was not recorded." if late in wait.actions else ""
        return _closed(wait, f"This was already {who}.{lost}", status, extras)
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
        frame="letter",
    )


def _closed(wait: WaitView, said: str, status: int, extras: Extras | None) -> Response:
    answer = wait.response if isinstance(wait.response, dict) else None
    shown = {_label(wait.schema, name): value for name, value in (answer or {}).items() if name not in _SAID}
    if action := (answer or {}).get("action"):
        shown = {"Answer": as_words(str(action)), **shown}
    details = join(
        el("p", "Recorded ", moment(wait.answered_at_ms), ".", class_="quiet") if wait.answered_at_ms else None,
        value_view(shown) if shown else None,
    )
    return page(
        _title(wait),
        el("p", wait.workflow, class_="quiet"),
        el("h1", _title(wait)),
        el("p", said, class_="notice" if wait.status == "answered" and status == 200 else "notice off", role="status"),
        details,
        status=status,
        frame="letter",
        extras=extras,
    )


def _asker(wait: WaitView, background: Background) -> Html:
    """The sender of the question: a person or the workflow, and the time."""
    name = (background.starter or "").partition(":")[2] or wait.workflow
    initials = "".join(part[0] for part in re.findall(r"[^\W_]+", name)[:2]).upper() or "?"
    where = None if name == wait.workflow else f"{wait.workflow}. "
    return el(
        "header",
        el("span", initials, class_="who", aria_hidden="true"),
        el("div", el("p", el("b", name), " asks you"), el("p", where, moment(wait.opened_at_ms), class_="quiet")),
        class_="asker",
    )


def _foot(wait: WaitView, background: Background) -> Html:
    """The deadline, what happens after it, and what the link is."""
    late = background.on_expire
    until = wait.expires_at_ms and el("span", "Open until ", moment(wait.expires_at_ms), class_="deadline")
    then = f"After that it counts as {as_words(late)}." if late in wait.actions else None
    once = "This link accepts one answer. Opening it changes nothing."
    return el("footer", until or None, _reminder(wait), el("span", then and f"{then} ", once), class_="foot")


def _reminder(wait: WaitView) -> Html | None:
    """When those who were notified are reminded, or were."""
    reminders = [each for each in wait.notifications if each.reminder]
    sent = next((each.settled_at_ms for each in reminders if each.status == "sent"), None)
    due = next((each.due_at_ms for each in reminders if each.status == "pending"), None)
    if sent is None and due is None:
        return None
    return el("span", "A reminder was sent " if sent else "A reminder is sent ", moment(sent or due), ".")


def _way(wait: WaitView, background: Background) -> Html:
    """The way that the question has come, and where the decision leads."""
    starter = background.starter and f", {background.starter.partition(':')[2] or background.starter}"
    points = [el("li", background.trigger, el("small", moment(background.started_at_ms), starter), class_="done")]
    points += [el("li", name, class_="done") for name in background.before if name != background.trigger]
    points.append(el("li", el("b", "You decide"), class_="here"))
    names = dict.fromkeys(name for action in wait.actions or ("out",) for name in background.after.get(action, ()))
    points += [el("li", name, el("small", _when(wait, background, name))) for name in list(names)[:5]]
    return el(
        "aside", el("h2", "Where this question comes from"), el("ol", *points), class_="way", aria_label="Background"
    )


def _when(wait: WaitView, background: Background, name: str) -> str | None:
    ways = [as_words(action) for action in wait.actions if name in background.after.get(action, ())]
    return None if len(ways) == len(wait.actions) else f"only after {' or '.join(ways)}"


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


def _buttons(wait: WaitView, background: Background) -> list[Html]:
    """A row for each button, with what it does beside it: in the author's words, else the names of what follows."""
    actions: list[Any] = list(wait.actions) or [None]
    request = wait.request if isinstance(wait.request, dict) else {}
    given = request.get("outcomes")
    outcomes = given if isinstance(given, dict) else {}
    # A lost attempt has no usual answer, so each button names its effect.
    words = _LOST if wait.kind == "attention" else {None: str(request.get("submit") or "Send")}
    rows = []
    for position, action in enumerate(actions):
        follows = background.after.get(action or "out", ())
        outcome = outcomes.get(action) or (follows and f"Continues with {' and '.join(follows)}.") or None
        button = el(
            "button",
            words.get(action) or as_words(action),
            type="submit",
            name="action" if action else None,
            value=action,
            class_="primary" if position == 0 and wait.kind != "attention" else None,
            aria_describedby=f"outcome.{position}" if outcome else None,
        )
        rows.append(el("div", button, outcome and el("span", outcome, id=f"outcome.{position}")))
    return rows
