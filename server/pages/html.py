"""HTML by construction: `el("a", text, href=url)`. Text is escaped unless it is Html, and only this file makes Html of
text."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Any, Literal, LiteralString

import orjson
from starlette.responses import Response

from executor.errors import NotFound, WebhookDisabled, WebhookNotReady, WeftError
from server.ui import Extras

_VOID = frozenset({"input", "link", "meta", "br", "hr", "img"})


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


def markup(template: LiteralString, *children: Any) -> Html:
    """Markup with a child, as of `el`, in place of each `{}`."""
    return Html(template.format(*map(join, children)))


def join(*children: Any) -> Html:
    """Pieces of HTML as one: texts are escaped, None is left out."""
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
    title: str,
    *main: Any,
    status: int = 200,
    frame: Literal["plain", "letter", "talk"] = "plain",
    aside: Html | None = None,
    script: str | None = None,
    extras: Extras | None = None,
) -> Response:
    """A whole document. `frame`: plain has the header with its link to the editor; a letter is a sheet of its own for
    people who follow a link, with `aside` beside it; a talk fills the window. `script` is the address of its script;
    `extras` are the parts that the interface adds."""
    added, fonts = extras or Extras()
    whole = markup(
        _WHOLE,
        title,
        el("link", rel="stylesheet", href=fonts) if fonts else None,
        el("script", src=script, defer=True) if script else None,
        el("script", src=added, type="module") if added else None,
        markup(_FRAMES[frame], main, aside),
    )
    return Response(whole, status, media_type="text/html; charset=utf-8")


_WHOLE = """<!doctype html>
<html lang="en"><head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{} · weft</title>
<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">
{}<link rel="stylesheet" href="/static/weft.css">{}{}
</head>{}</html>"""
# Three warps of ink and two wefts of plum, as `web/src/ui/Mark.tsx` draws it.
_MARK = """<svg class="woven" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"><path class="warp"
d="M4.5 2v16M10 2v16M15.5 2v16"/><path class="weft" d="M1.6 7h16.8M1.6 13h16.8"/><path class="gap"
d="M2.2 7h4.6M13.2 7h4.6M7.7 13h4.6M10 4.7v4.6M4.5 10.7v4.6M15.5 10.7v4.6"/><path class="weft flat"
d="M2.1 7h4.8M13.1 7h4.8M7.6 13h4.8"/><path class="warp flat" d="M10 4.6v4.8M4.5 10.6v4.8M15.5 10.6v4.8"/></svg>"""
MARK = Html(_MARK)
_FRAMES: dict[str, LiteralString] = {
    "plain": f"""<body><header class="banner"><a href="/" class="mark">{_MARK}weft</a></header>
<main>{{}}</main>{{}}</body>""",
    "letter": f"""<body class="letter"><div class="desk">
<main class="sheet"><span class="signet">{_MARK}</span>{{}}</main>{{}}</div></body>""",
    "talk": """<body class="talk">{}{}</body>""",
}


def moment(at_ms: int | None) -> Html:
    """A point in time, in UTC; the script shows the reader's own zone."""
    if at_ms is None:
        return el("span", "not yet", class_="quiet")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return el("time", at.strftime("%d %b %Y, %H:%M:%S UTC"), datetime=at.isoformat(timespec="milliseconds"))


def value_view(value: Any, depth: int = 0) -> Html:
    """JSON for people: objects as rows of name and value, lists as lists, text with its line breaks."""
    if isinstance(value, dict) and value and depth < 4:
        rows = [join(el("dt", str(name)), el("dd", value_view(item, depth + 1))) for name, item in value.items()]
        return el("dl", *rows, class_="value")
    if isinstance(value, list) and value and depth < 4:
        if columns := _columns(value):
            return join(_table(columns, value), _more(value))
        items = el("ol", *[el("li", value_view(item, depth + 1)) for item in value[:ITEMS_MAX]], class_="value")
        return join(items, _more(value))
    if isinstance(value, str):
        return el("span", value, class_="text")
    if isinstance(value, bool):
        return el("span", "Yes" if value else "No")
    if value is None:
        return el("span", "None", class_="quiet")
    return el("code", as_json(value))


COLUMNS_MAX = 6
ITEMS_MAX = 200


def _columns(rows: list[Any]) -> list[str]:
    """The names that all rows share, in the order of the first; [] when a table would not hold them."""
    if not all(isinstance(row, dict) and row for row in rows):
        return []
    columns = list(rows[0])
    if len(rows) < 2 or len(columns) > COLUMNS_MAX or any(set(row) != set(columns) for row in rows):
        return []
    return [] if any(isinstance(item, (dict, list)) for row in rows for item in row.values()) else columns


def _table(columns: list[str], rows: list[Any]) -> Html:
    head = el("tr", *[el("th", str(name), scope="col") for name in columns])
    body = [el("tr", *[el("td", value_view(row[name])) for name in columns]) for row in rows[:ITEMS_MAX]]
    table = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>{}{}</table></div>'
    return markup(table, el("thead", head), el("tbody", body))


def _more(items: list[Any]) -> Html | None:
    left = len(items) - ITEMS_MAX
    return el("p", f"and {left:,} more, not shown here", class_="quiet") if left > 0 else None


def as_json(value: Any) -> str:
    """A value as indented JSON, for a person to read."""
    return orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def as_words(action: str) -> str:
    """`ask_again` -> `Ask again`."""
    words = action.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] if words else action


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
    return page(title, el("h1", heading or title), el("p", text), status=status, frame="letter")
