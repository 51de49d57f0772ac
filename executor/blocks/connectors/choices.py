"""The choices that a form offers for a field of a connector: which operation lists them, and how its answer is read."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from compiler.catalog import Params
from executor.blocks.connectors.document import Choices, Connector, Operation, choices_of
from executor.blocks.connectors.pages import at, items_of
from executor.blocks.connectors.template import filled
from executor.errors import BadRequest
from executor.kernel.values.payload import render

_TEXT_MAX: Final = 300
_SIGNED: Final = ("credential", "connection", "base_url", "region")


class Choice(Struct, frozen=True):
    """`value` is what the field gets; `title` is shown, and `about` beside it."""

    value: str | int
    title: str
    about: str = ""


class Listing(Struct, frozen=True):
    """The operation that lists the choices, with its params; `only` as in the document, filled in."""

    choices: Choices
    operation: Operation
    params: dict[str, Any]
    only: dict[str, Any]
    searches: bool

    def found(self, body: Any) -> Iterator[Choice]:
        """Yield the choices in an answer."""
        choices = self.choices
        for item in self._items(body):
            value = at(choices.value, item)
            if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
                continue
            if all(at(pointer, item) in values for pointer, values in self.only.items()):
                title = _line(at(choices.title, item)) if choices.title else ""
                yield Choice(value, title or str(value), _line(at(choices.about, item)) if choices.about else "")

    def _items(self, body: Any) -> list[Any]:
        choices, pages = self.choices, self.operation.pages
        if choices.element:
            element = re.escape(choices.element)
            texts = re.findall(f"<{element}>([^<]*)</{element}>", body if isinstance(body, str) else "")
            return [html.unescape(text) for text in texts]
        if pages is not None and not choices.items:
            return items_of(pages, body)
        found = at(choices.items, body)
        return found if isinstance(found, list) else []


def listing_of(connector: Connector, field: str, params: Params, text: str) -> Listing:
    """Return what to ask for the choices of a field. Raises BadRequest: choices_none, and choices_wait for what has to
    be filled in first."""
    choices = choices_of(connector).get(field)
    if choices is None:
        message = f"the field {field[:100]!r} of {connector.title} has no choices"
        raise BadRequest(message, code="choices_none", pointer="/field")
    if connector.auth.kind != "none" and not any(params.get(name) for name in ("credential", "connection")):
        message, hint = f"{connector.title} is not connected", "choose or make a connection first"
        raise BadRequest(message, code="choices_wait", pointer="/params/connection", hint=hint)
    operation = connector.operations[choices.operation]
    for name in choices.needs(operation):
        if params.get(name) in (None, "", []):
            message = f"{_title(connector, name)} has to be filled in first"
            raise BadRequest(message, code="choices_wait", pointer=f"/params/{name}")
    asked = {name: params[name] for name in _SIGNED if params.get(name)}
    asked |= {name: params[name] for name in operation.required if params.get(name)}
    asked |= filled(choices.fixed, params) or {}
    if choices.search and text:
        asked[choices.search] = text
    only = filled(choices.only, params) or {}
    return Listing(choices, operation, {**asked, "operation": choices.operation}, only, bool(choices.search))


def _title(connector: Connector, name: str) -> str:
    schemas = [one.fields[name] for one in connector.operations.values() if name in one.fields]
    return next((str(schema["title"]) for schema in schemas if schema.get("title")), name.replace("_", " "))


def _line(value: Any) -> str:
    return "" if value is None else " ".join(render(value).split())[:_TEXT_MAX]


def matches(choice: Choice, text: str) -> bool:
    """Return True if every word of the text is in a choice."""
    whole = f"{choice.title} {choice.about} {choice.value}".casefold()
    return all(word in whole for word in text.casefold().split())
