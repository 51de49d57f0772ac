"""The trigger that a connector document makes of its `events`: `event.<service>`. It reads a list of the service with
one of its operations, and each new item is an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

import msgspec

from compiler.catalog import CONNECTOR, EVENT, BlockSpec, Finding, Params
from executor.blocks.connectors.block import ConnectorBlock, refused_by, request_of
from executor.blocks.connectors.document import Connector, EventList, Operation, Pages, choices_of
from executor.blocks.connectors.pages import ITEMS_MAX, PAGES_MAX, after, at, items_of, page_invalid
from executor.blocks.types import http
from executor.blocks.types.params import invalid
from executor.blocks.types.polled import Before, Event, Found, event_spec, passed_on
from executor.blocks.types.xml import xml_value
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render

_WHEN: Final = ("x-when", "x-required")
PUSH: Final = "push"
_DELIVERY: Final[dict[str, Any]] = {
    "enum": ["poll", PUSH],
    "default": "poll",
    "title": "Delivery",
    "description": "Push: this server registers at the service, which reports new events at once.",
    "x-titles": {"poll": "Poll", PUSH: "Push"},
    "x-weft": "literal",
    "x-ui": {"order": 1_999, "widget": "select"},
}
FULL: Final = 20  # a list without pages that has so many items, all of them new, may have left some out


class EventBlock:
    """The params of the operation of the chosen event, without those that the document sets."""

    def __init__(self, block: ConnectorBlock) -> None:
        self.type = EVENT + block.type.removeprefix(CONNECTOR)
        self._block = block

    @property
    def connector(self) -> Connector:
        return self._block.connector

    @cached_property
    def spec(self) -> BlockSpec:
        connector = self.connector
        offered = ConnectorBlock(msgspec.structs.replace(connector, operations=dict(_offered(connector)))).spec

        def check(params: Params) -> tuple[Finding, ...]:
            return offered.check(_as_operation(params)) if offered.check is not None else ()

        def item_of(params: Params) -> dict[str, Any] | None:
            event = self.event_of(params)
            return None if event is None else event.output or connector.operations[event.operation].output

        titles = ", ".join(event.title.lower() for event in list(connector.events.values())[:8])
        return event_spec(
            self.type,
            f"{connector.title} event",
            f"Starts the workflow for what is new in {connector.title}: {titles}.",
            _as_events(connector, offered.params),
            event=item_of,
            check=check,
            sentence="{event}",
            icon=connector.icon,
        )

    async def run(self, ctx: StepContext) -> Done:
        return await passed_on(ctx)

    async def poll(self, ctx: StepContext, before: Before) -> Found:
        event = self.event_of(ctx.params)
        if event is None:
            raise invalid(
                f"there is no event {str(ctx.params['event'])[:80]!r}", f"use one of {', '.join(self.connector.events)}"
            )
        position = before.position if isinstance(before.position, dict) else {}
        last, floor = position.get("last"), position.get("floor")
        if event.time is not None and event.time.at == "#" and last is None:
            last = ctx.now_ms // 1000
        items, whole = await self._read(ctx, event, before, last)
        if event.id == "#":
            return _by_place(items, position)
        grows = event.order == "oldest" and event.time is not None and event.time.field != ""
        while before.first and grows and (later := _last(event, items, last)) != last:
            last = later  # to the end of what was there
            items += (await self._read(ctx, event, before, last))[0]
        if event.order == "newest" and event.time is None:  # what an item that is gone makes room for is older
            items = list(takewhile(lambda item: _id(event, item) not in before.seen, items))
        kept = [item for item in items if all(at(pointer, item) in values for pointer, values in event.only.items())]
        if event.order == "newest":
            kept.reverse()
        last = _last(event, items, last)
        if before.first:
            floor = last
        elif floor is not None and event.time is not None and event.time.at != "#":
            kept = [item for item in kept if not _is_before(at(event.time.at, item), floor)]
        events = [Event(_id(event, item), item) for item in kept]
        more = grows and not before.first and any(_id(event, item) not in before.seen for item in items)
        note = None if whole or grows else "there may be more new items than could be read: poll more often"
        return Found(events, {"last": last, "floor": floor}, more, note)

    def is_pushed(self, params: Params) -> bool:
        event = self.event_of(params)
        return params.get("delivery") == PUSH and event is not None and event.push is not None

    def event_of(self, params: Params) -> EventList | None:
        name = params.get("event") or next(iter(self.connector.events))
        return self.connector.events.get(name) if isinstance(name, str) else None

    async def _read(self, ctx: StepContext, event: EventList, before: Before, last: Any) -> tuple[list[Any], bool]:
        """Return the items in the order of the service, and whether these are all that can be new."""
        operation = self.connector.operations[event.operation]
        pages = event.pages or operation.pages or Pages("link", event.items or "")
        if event.items is not None:
            pages = msgspec.structs.replace(pages, items=event.items)
        given: dict[str, Any] = {**ctx.params, **event.set}
        if event.time is not None and event.time.field and last is not None:
            given[event.time.field] = last
        one_page = event.pages is None and operation.pages is None
        request: dict[str, Any] | None = request_of(self.connector, operation, given, ctx.now_ms)
        items: list[Any] = []
        for number in range(1, PAGES_MAX + 1):
            assert request is not None
            answer = await self._ask(ctx, request, pages.items)
            found = items_of(pages, answer["body"])
            items += found
            if event.order == "newest" and (before.first or _has_seen(event, found, before)):
                return items, True
            if one_page:
                return items, event.order != "newest" or len(found) < FULL
            if pages.kind == "cursor" and pages.name in operation.fields:  # part of what is signed
                token = at(pages.next or "", answer["body"])
                if token and token == given.get(pages.name):
                    raise page_invalid("the answer asks for the same page again")
                given[pages.name] = token
                request = request_of(self.connector, operation, given, ctx.now_ms) if token else None
            else:
                request = after(pages, request, answer, number)
            if request is None:
                return items, True
            if len(items) >= ITEMS_MAX:
                break
        if event.order == "any":
            message = f"the list has more than {len(items)} items, too many to find new ones among them"
            raise BlockError(message, code="events_too_many", retryable=False, hint="choose a part of it")
        return items, False

    async def _ask(self, ctx: StepContext, request: dict[str, Any], items: str) -> dict[str, Any]:
        done = await http.block.run(msgspec.structs.replace(ctx, params=request))
        answer: dict[str, Any] = done.output
        if isinstance(answer["body"], str):
            answer = {**answer, "body": xml_value(answer["body"])}
            if isinstance(only := at(items, answer["body"]), dict):
                answer["body"][items.removeprefix("/")] = [only]  # a list of one is not seen in XML
        if (refused := refused_by(self.connector, answer["body"])) is not None:
            raise refused
        return answer


def _offered(connector: Connector) -> Iterator[tuple[str, Operation]]:
    """Yield an operation for each event, with the fields that people fill in."""
    for name, event in connector.events.items():
        operation = connector.operations[event.operation]
        pages = event.pages or operation.pages
        hidden = {*event.set, event.time.field if event.time is not None else "", pages.name if pages else ""}
        fields = {
            field: {keyword: value for keyword, value in schema.items() if keyword != "choices"}
            for field, schema in operation.fields.items()
            if field not in hidden
        }
        yield (
            name,
            msgspec.structs.replace(
                operation,
                title=event.title,
                description=event.description,
                fields=fields,
                required=tuple(field for field in operation.required if field in fields),
                pages=None,
            ),
        )


def _as_operation(params: Params) -> Params:
    return {**params, "operation": params.get("event")} if "event" in params else params


def _as_events(connector: Connector, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the params of operations as those of events: which one is the param `event`."""
    properties = {"event" if name == "operation" else name: dict(one) for name, one in schema["properties"].items()}
    chosen = properties["event"]
    chosen |= {"title": "Event", "description": "What starts the workflow."}
    for one in properties.values():
        for keyword in _WHEN:
            if "operation" in one.get(keyword, {}):
                its = dict(one[keyword])
                one[keyword] = {"event": its.pop("operation"), **its}
    if pushed := [name for name, event in connector.events.items() if event.push is not None]:
        properties["delivery"] = {**_DELIVERY, "x-when": {"event": pushed}}
    for name, offered in choices_of(connector).items():
        if name in properties:
            shown = {**properties[name]["x-ui"], "choices": offered.needs(connector.operations[offered.operation])}
            properties[name]["x-ui"] = shown
    return {**schema, "properties": properties}


def _by_place(items: list[Any], position: Mapping[str, Any]) -> Found:
    known = min(int(position.get("count") or 0), len(items))
    events = [Event(f"#{n}", item) for n, item in enumerate(items[known:], known + 1)]
    return Found(events, {"count": len(items)})


def _id(event: EventList, item: Any) -> str:
    pointers = (event.id,) if isinstance(event.id, str) else event.id
    parts = [at(pointer, item) for pointer in pointers]
    if parts[0] in (None, ""):
        raise BlockError(f"an item has nothing at {pointers[0]!r}", code="event_invalid", retryable=False)
    return " ".join(render(part) for part in parts)


def _has_seen(event: EventList, items: Iterable[Any], before: Before) -> bool:
    return any(_id(event, item) in before.seen for item in items)


def _last(event: EventList, items: Iterable[Any], last: Any) -> Any:
    if event.time is None or event.time.at == "#":
        return last
    for value in (at(event.time.at, item) for item in items):
        if value is not None and (last is None or _is_before(last, value)):
            last = value
    return last


def _is_before(value: Any, other: Any) -> bool:
    one, two = number_of(value), number_of(other)
    return one is not None and two is not None and one < two


def number_of(value: Any) -> float | None:
    """Return a time or a number as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        return float(value)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
