"""Reads a long list page by page: makes the request for the next page, and detects the last one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from executor.blocks.connectors.document import Pages
from executor.errors import BlockError

PAGES_MAX: Final = 100
ITEMS_MAX: Final = 10_000
_NEXT: Final = re.compile(r'<([^<>]{1,4000})>[^,]*;\s*rel="?next"?([^,]*)')  # Sentry links also what is empty


def at(pointer: str, value: Any) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isascii() and name.isdecimal():
            value = value[int(name)] if len(name) <= 9 and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def items_of(pages: Pages, body: Any) -> list[Any]:
    items = at(pages.items, body)
    if items is None:
        return []
    if not isinstance(items, list):
        raise page_invalid(f"the answer has no list at {pages.items or 'its top'}")
    return items


def after(pages: Pages, request: Mapping[str, Any], answer: Mapping[str, Any], number: int) -> dict[str, Any] | None:
    """Return the request for the page after the `number`th, or None if that was the last. Raises
    BlockError(page_invalid), also for a request to another server: it has the credential with it."""
    body = answer["body"]
    if pages.more is not None and not at(pages.more, body):
        return None
    if pages.kind != "link":
        wanted = _following(pages, request, body, number)
        return None if wanted in (None, "", False) else _with(pages, request, wanted)
    link = at(pages.next, body) if pages.next is not None else _linked(answer["headers"])
    if not isinstance(link, str) or not link:
        return None
    link = urljoin(str(request["url"]), link) if link.startswith("/") else link
    if urlsplit(link)[:2] != urlsplit(str(request["url"]))[:2]:
        raise page_invalid(f"the next page is on another server: {link[:200]}")
    if link == request["url"]:
        raise page_invalid("the answer asks for the same page again")
    return {**request, "url": link, "query": None}


def place_of(pages: Pages, request: Mapping[str, Any]) -> str:
    """Return what requests this page, as `at_place` takes it."""
    return str(request["url"] if pages.kind == "link" else at(f"/{pages.into}{_pointer(pages)}", request))


def at_place(pages: Pages, request: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the request for the page at a place; `request` is that for the first. Raises BlockError(page_invalid)."""
    if pages.kind != "link":
        return _with(pages, request, int(place) if pages.kind in ("page", "offset") and place.isdecimal() else place)
    if urlsplit(place)[:2] != urlsplit(str(request["url"]))[:2]:
        raise page_invalid("the page is on another server")
    return {**request, "url": place, "query": None}


def _following(pages: Pages, request: Mapping[str, Any], body: Any, number: int) -> Any:
    """Return the number or cursor that requests the page after the `number`th; None, "" or False if there is none."""
    asked = at(f"/{pages.into}{_pointer(pages)}", request)
    if pages.kind != "cursor":
        items = items_of(pages, body)
        if len(items) < (1 if pages.more is not None else pages.size):
            return None
        if pages.kind == "page":
            return pages.first + number
        if pages.kind == "offset":
            return int(asked or 0) + len(items)
        body = items[-1]
    cursor = at(pages.next or "", body)
    if asked == cursor and cursor not in (None, "", False):
        raise page_invalid("the answer asks for the same page again")
    return cursor


def page_invalid(message: str) -> BlockError:
    return BlockError(message, code="page_invalid", retryable=False)


def _pointer(pages: Pages) -> str:
    return pages.name if pages.name.startswith("/") else f"/{pages.name}"


def _with(pages: Pages, request: Mapping[str, Any], value: Any) -> dict[str, Any]:
    if pages.path:
        url = str(request["url"])
        url = url if url.endswith(pages.path) else url + pages.path
        return {**request, "url": url, "query": {}, "body": {pages.name: value}}
    return _put(request, [pages.into, *_pointer(pages).split("/")[1:]], value)


def _put(within: Mapping[str, Any], steps: list[str], value: Any) -> dict[str, Any]:
    first, *others = steps
    return {**within, first: _put(within.get(first) or {}, others, value) if others else value}


def _linked(headers: Mapping[str, str]) -> str | None:
    found = _NEXT.search(headers.get("link", "")[:20_000])
    return found[1] if found and 'results="false"' not in found[2] else None
