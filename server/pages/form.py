"""The pages of a public form: the form, and what became of a submission."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from executor.service.triggers.forms import FormView
from executor.service.views import RunView
from server.pages import instead
from server.pages.forms import encoding_of, form_fields
from server.pages.html import Html, el, join, page, value_view
from server.ui import Extras

ONCE = "once"  # the input that makes repeated posts of one loaded page the same submission


def ask(
    form: FormView,
    *,
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    error: str | None = None,
    extras: Extras | None = None,
    read_only: bool = False,
) -> Response:
    """The form. With `error` or `errors` what was filled in did not fit, and is kept (422)."""
    wrong = bool(errors or error)
    once = (typed or {}).get(ONCE) or secrets.token_urlsafe(18)
    return _sheet(
        form,
        el("p", form.text, class_="text") if form.text else None,
        el("p", error or "Check the marked fields.", class_="notice err", role="alert") if wrong else None,
        instead.read_only()
        if read_only
        else el(
            "form",
            el("input", type="hidden", name=ONCE, value=once),
            form_fields(form.schema, typed, errors or {}),
            el("div", el("button", form.submit, type="submit", class_="primary"), class_="actions"),
            method="post",
            enctype=encoding_of(form.schema),
        ),
        status=422 if wrong else 200,
        extras=extras,
    )


def submitted(form: FormView, run: RunView, extras: Extras | None = None) -> Response:
    """The page after a submission. Errors inside the run are for users who may see the run; the submission was received
    in any case, so this is not an error page."""
    ended = run.status == "succeeded"
    answer = run.response.get("body") if ended and run.response is not None else None
    if run.status in ("failed", "cancelled"):
        said = el("p", "Your submission was received, but it was not processed.", class_="notice err", role="alert")
    else:
        more = "" if ended else " It is being processed."
        said = el("p", f"Thank you. Your submission was received.{more}", class_="notice", role="status")
    return _sheet(
        form,
        said,
        el("p", form.done, class_="text") if form.done else None,
        el("section", value_view(answer), class_="shown", aria_label="Answer")
        if answer not in (None, "", {}, [])
        else None,
        el("p", el("a", "Submit another response", href=""), class_="quiet once"),
        status=200 if ended or run.status in ("failed", "cancelled") else 202,
        extras=extras,
    )


def _sheet(form: FormView, *main: Any, status: int, extras: Extras | None) -> Response:
    content: Html = join(el("h1", form.title), *main)
    return page(form.title, content, status=status, chrome=False, extras=extras)
