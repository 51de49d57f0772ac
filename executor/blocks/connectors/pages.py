"""Reads a long list page by page: makes the request for the next page, and detects the last one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from executor.blocks.connectors.document import Pages
from executor.errors import BlockError

PAGES_MAX: Final = 100
ITEMS_MAX: Final = 10_000
_NEXT: Final = re.compile(r'<([^<>]{1,4000})>[^,]*;\s*rel="?next"?')


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
    if pages.kind == "page":
        if len(items_of(pages, body)) < pages.size:
            return None
        return _with(pages, request, pages.first + number)
    if pages.kind == "cursor":
        cursor = at(pages.next or "", body)
        asked = request.get(pages.into)
        if cursor in (None, "", False):
            return None
        if isinstance(asked, Mapping) and asked.get(pages.name) == cursor:
            raise page_invalid("the answer asks for the same page again")
        return _with(pages, request, cursor)
    link = at(pages.next, body) if pages.next is not None else _linked(answer["headers"])
    if not isinstance(link, str) or not link:
        return None
    if urlsplit(link)[:2] != urlsplit(str(request["url"]))[:2]:
        raise page_invalid(f"the next page is on another server: {link[:200]}")
    if link == request["url"]:
        raise page_invalid("the answer asks for the same page again")
    return {**request, "url": link, "query": None}


def place_of(pages: Pages, request: Mapping[str, Any]) -> str:
    """Return what requests this page, as `at_place` takes it."""
    return str(request["url"] if pages.kind == "link" else request[pages.into][pages.name])


def at_place(pages: Pages, request: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the request for the page at a place; `request` is that for the first. Raises BlockError(page_invalid)."""
    if pages.kind != "link":
        return _with(pages, request, int(place) if pages.kind == "page" and place.isdecimal() else place)
    if urlsplit(place)[:2] != urlsplit(str(request["url"]))[:2]:
        raise page_invalid("the page is on another server")
    return {**request, "url": place, "query": None}


def page_invalid(message: str) -> BlockError:
    return BlockError(message, code="page_invalid", retryable=False)


def _with(pages: Pages, request: Mapping[str, Any], value: Any) -> dict[str, Any]:
    return {**request, pages.into: {**(request.get(pages.into) or {}), pages.name: value}}


def _linked(headers: Mapping[str, str]) -> str | None:
    found = _NEXT.search(headers.get("link", "")[:20_000])
    return found[1] if found else None
