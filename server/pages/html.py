"""HTML by construction: `el("a", text, href=url)`. Text is escaped unless it is Html, and only this file makes Html of
text."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.responses import Response

_VOID = frozenset({"input", "link", "meta", "br", "hr"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def el(tag: str, /, *children: Any, **attributes: str | int | bool | None) -> Html:
    """One element. Children: text (escaped), Html, None (nothing), or lists of those. Attribute `class_` is `class`,
    `data_run` is `data-run`; True gives a bare attribute, None and False none."""
    parts = ["<", tag]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{html.escape(str(value))}"')
    parts.append(">")
    if tag in _VOID:
        return Html("".join(parts))
    parts.append(join(*children))
    parts.append(f"</{tag}>")
    return Html("".join(parts))


def join(*children: Any) -> Html:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(html.escape(child))
        else:
            parts.append(join(*child))
    return Html("".join(parts))


def page(
    title: str, *main: Any, status: int = 200, chrome: bool = True, live: bool = True, script: str | None = None
) -> Response:
    """A whole document. `chrome`: with the header that leads home; `live`: with the script that keeps it fresh;
    `script`: address of a module that adds to the page."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · weft"),
        el("link", rel="icon", href="/static/favicon.svg", type="image/svg+xml"),
        el("link", rel="stylesheet", href="/static/weft.css"),
        el("script", src="/static/live.js", defer=True) if live else None,
        el("script", src=script, type="module") if script else None,
    )
    banner = el("header", el("a", "weft", href="/", class_="mark"), class_="banner") if chrome else None
    body = el("body", banner, el("main", *main, class_=None if chrome else "narrow"))
    return Response(
        "<!doctype html>\n" + el("html", head, body, lang="en"), status, media_type="text/html; charset=utf-8"
    )


def moment(at_ms: int | None) -> Html:
    """A point in time, in UTC; the script shows the reader's own zone."""
    if at_ms is None:
        return el("span", "not yet", class_="quiet")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return el("time", at.strftime("%d %b %Y, %H:%M:%S UTC"), datetime=at.isoformat(timespec="milliseconds"))


def status_mark(status: str) -> Html:
    """Colour is never alone: the word is always there."""
    return el("span", status, class_=f"status {status}")


def value_view(value: Any, depth: int = 0) -> Html:
    """JSON for people: objects as rows of name and value, lists as lists, text with its line breaks."""
    if isinstance(value, dict) and value and depth < 4:
        rows = [join(el("dt", str(name)), el("dd", value_view(item, depth + 1))) for name, item in value.items()]
        return el("dl", *rows, class_="value")
    if isinstance(value, list) and value and depth < 4:
        return el("ol", *[el("li", value_view(item, depth + 1)) for item in value[:200]], class_="value")
    if isinstance(value, str):
        return el("span", value, class_="text")
    if isinstance(value, bool):
        return el("span", "Yes" if value else "No")
    if value is None:
        return el("span", "None", class_="quiet")
    return el("code", as_json(value))


def as_json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def json_block(value: Any) -> Html:
    return el("pre", as_json(value), class_="json", tabindex="0")
