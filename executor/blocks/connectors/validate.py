"""The check of a connector document: all problems at once, each with its place and a hint.

`connector.schema.json` beside this file is its JSON Schema, which editors can use. What a schema cannot express is
checked here: that every placeholder is a field, that a path's fields are required, that fields of one name are the same
field.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final, NoReturn

import msgspec
import orjson

from compiler.references import escape
from compiler.schema import schema_error
from executor.blocks.connectors.document import (
    BYTES_MAX,
    HOOK,
    RESERVED,
    SENT,
    Check,
    Choices,
    Connector,
    EventList,
    HookCall,
    Operation,
    choices_of,
    trusted,
)
from executor.blocks.connectors.template import names_in
from executor.errors import BadRequest
from executor.kernel.values.schema import violations

# Fields of one name may differ in these.
_APART: Final = frozenset({"title", "description", "default", "x-ui", "choices"})
ASKED: Final = (*SENT, "since", "since_s")


def read(data: bytes) -> Connector:
    """Raises BadRequest(connector_invalid): `errors` has all that is wrong."""
    if len(data) > BYTES_MAX:
        _refuse([_wrong("", f"The document has more than {BYTES_MAX} bytes.", "Keep only the operations you need.")])
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _refuse([_wrong("", f"The document is not JSON: {error}.", "Check commas and quotation marks.")])
    return checked(document)


def checked(document: Any) -> Connector:
    """Check a document that is decoded already, like `read`."""
    hint = "connector.schema.json and docs/howto/connectors.md describe the format."
    found = [_wrong(one["pointer"], f"{one['message']}.", hint) for one in violations(schema(), document)]
    if found:
        _refuse(found)
    connector = trusted(document)
    if problems := list(_problems(connector)):
        _refuse(problems)
    return connector


@cache
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(files(__package__).joinpath("connector.schema.json").read_bytes())
    return loaded


def _problems(connector: Connector) -> Iterator[dict[str, str]]:
    if connector.auth.kind == "path" and "credential" not in names_in(connector.base_url):
        hint = "Add it where the service wants it, or change /auth/kind."
        yield _wrong("/base_url", "It has no {{credential}}.", hint)
    first: dict[str, tuple[str, Any]] = {}
    choices = choices_of(connector)
    for id, operation in connector.operations.items():
        at = f"/operations/{escape(id)}"
        helping: set[str] = set()  # fields that only the choices of another one use
        for its in (choices[name] for name in operation.fields if name in choices):
            listing = connector.operations.get(its.operation)
            helping.update(its.needs(listing) if listing is not None else ())
        for name in dict.fromkeys(names_in(operation.base_url or connector.base_url)):
            has_value = name in operation.required or "default" in operation.fields.get(name, {})
            if not has_value and name not in ("credential", "region"):
                hint = "Add it to the fields of the connector."
                yield _wrong("/base_url", f"The address needs {name!r}, which is not a field of all operations.", hint)
        yield from _problems_of(operation, at, helping | connector.fields.keys())
        for name, its in operation.fields.items():
            other, before = first.setdefault(name, (id, its))
            if _shape(its) != _shape(before):
                said = f"{name!r} is another kind of field in operation {other!r}."
                hint = "Give one of them another name: a field that two operations share has one type and one choice."
                yield _wrong(f"{at}/fields/{escape(name)}", said, hint)
            if "choices" in its:
                here = f"{at}/fields/{escape(name)}/choices"
                if msgspec.convert(its["choices"], Choices) != choices[name]:
                    yield _wrong(here, f"{name!r} has other choices in another operation.", "Write them once.")
                yield from _problems_of_choices(connector, choices[name], here)
    for id, event in connector.events.items():
        yield from _problems_of_event(connector, event, f"/events/{escape(id)}")


def _problems_of_event(connector: Connector, event: EventList, at: str) -> Iterator[dict[str, str]]:
    operation = connector.operations.get(event.operation)
    if operation is None:
        yield _wrong(f"{at}/operation", f"There is no operation {event.operation!r}.", "Name one that reads a list.")
        return
    if not operation.only_reads:
        yield _wrong(f"{at}/operation", "It may change something.", "Use a GET, or add `reads` to the operation.")
    for name in event.set:
        if name not in operation.fields:
            yield _wrong(f"{at}/set/{escape(name)}", f"{event.operation!r} has no field {name!r}.", "Remove it.")
    if event.time is not None and event.time.field and event.time.field not in operation.fields:
        message = f"{event.operation!r} has no field {event.time.field!r}."
        yield _wrong(f"{at}/time/field", message, "Name the field that takes the last time.")
    if event.items is None and event.pages is None and operation.pages is None:
        yield _wrong(at, "It has no list.", "Add `items`, the pointer to the list in the answer.")
    if event.push is None:
        return
    if (hooks := connector.hooks) is None:
        yield _wrong(f"{at}/push", "The connector has no `hooks`.", "Describe how to register, or remove it.")
        return
    known = {*operation.fields, *event.push, *hooks.take, *HOOK}
    for where in ("create", "list", "renew", "delete", "before"):
        call: HookCall | None = getattr(hooks, where)
        for name in names_in([call.path, call.query, call.headers, call.body] if call is not None else []):
            if name not in known:
                yield _wrong(f"/hooks/{where}", f"{event.operation!r} has no field {name!r}.", "Add it to /hooks/take.")


def _problems_of(operation: Operation, at: str, helping: set[str]) -> Iterator[dict[str, str]]:
    for name, its in operation.fields.items():
        here = f"{at}/fields/{escape(name)}"
        if name in RESERVED:
            yield _wrong(here, f"The name {name!r} has another meaning in every connector.", "Use another name.")
        if (problem := schema_error(orjson.dumps(its))) is not None:
            yield _wrong(here, f"It is not a JSON Schema: {problem[:200]}.", "Use type, title and description.")
    for n, name in enumerate(operation.required):
        if name not in operation.fields:
            yield _wrong(f"{at}/required/{n}", f"There is no field {name!r}.", "Add it to fields.")
    sent = {"path": operation.path, "query": operation.query, "headers": operation.headers, "body": operation.body}
    for where, template in sent.items():
        for name in dict.fromkeys(names_in(template)):
            if name not in operation.fields and name not in SENT:
                yield _wrong(f"{at}/{where}", f"There is no field {name!r}.", "Add it to fields.")
    for name in dict.fromkeys(names_in(operation.path)):
        if name in operation.fields and name not in operation.required and "default" not in operation.fields[name]:
            said = f"The path needs {name!r}, which is not required."
            yield _wrong(f"{at}/required", said, "Add it to required, or give the field a default.")
    used = helping.union(names_in(list(sent.values())))
    for name in operation.fields.keys() - used:
        yield _wrong(f"{at}/fields/{escape(name)}", "No part of a request uses it.", "Use it, or remove it.")
    if (pages := operation.pages) is not None and pages.kind in ("cursor", "last") and pages.next is None:
        yield _wrong(f"{at}/pages", f"Pages of kind {pages.kind} need `next`.", "Write where it is, as a JSON pointer.")
    if operation.idempotent_s and not operation.idempotent:
        yield _wrong(f"{at}/idempotent_s", "Nothing recognizes a second request.", "Add idempotent, or remove it.")
    for n, check in enumerate(operation.check):
        yield from _problems_of_check(operation, check, f"{at}/check/{n}")


def _problems_of_check(operation: Operation, check: Check, at: str) -> Iterator[dict[str, str]]:
    if not any(name in SENT for name in names_in([operation.path, operation.query, operation.headers, operation.body])):
        said = "The operation sends nothing that it could be found by."
        yield _wrong(at, said, "Send {{idempotency_key}} or {{idempotency_uuid}} where the service keeps it.")
    known = {"path": ASKED, "query": ASKED, "body": ASKED, "output": (*SENT, "found", *check.take)}
    for where, more in known.items():
        for name in dict.fromkeys(names_in(getattr(check, where))):
            if name not in operation.fields and name not in more:
                yield _wrong(f"{at}/{where}", f"There is no field {name!r}.", "Add it to fields.")
    for name in (*check.needs, *names_in(check.path)):
        if name not in operation.fields and name not in ASKED:
            yield _wrong(at, f"There is no field {name!r}.", "Add it to fields.")


def _problems_of_choices(connector: Connector, choices: Choices, at: str) -> Iterator[dict[str, str]]:
    operation = connector.operations.get(choices.operation)
    if operation is None or not operation.only_reads:
        what = "There is no operation" if operation is None else "It may change something:"
        hint = "Name one that is a GET or has `reads`."
        yield _wrong(f"{at}/operation", f"{what} {choices.operation!r}.", hint)
        return
    for name in (*choices.fixed, *filter(None, [choices.search])):
        if name not in operation.fields:
            where = f"{at}/search" if name == choices.search else f"{at}/with/{escape(name)}"
            yield _wrong(where, f"The operation has no field {name!r}.", "Use one of its fields.")
    known = {name for one in connector.operations.values() for name in one.fields}
    for where, names in (("with", names_in(choices.fixed)), ("only", names_in(list(choices.only.values())))):
        for name in names:
            if name not in known:
                yield _wrong(f"{at}/{where}", f"There is no field {name!r}.", "Use a field of an operation.")


def _shape(schema: Any) -> Any:
    """Return the part of a field's schema that has to be the same in all operations that have the field."""
    return {name: value for name, value in schema.items() if name not in _APART}


def _wrong(pointer: str, message: str, hint: str) -> dict[str, str]:
    return {"pointer": pointer, "message": message, "hint": hint}


def _refuse(found: list[dict[str, str]]) -> NoReturn:
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    raise BadRequest(
        f"the connector document is not valid at {first['pointer'] or '/'}: {first['message']}{more}",
        code="connector_invalid",
        pointer=first["pointer"],
        hint=first["hint"],
        errors=found,
    )
