"""A connector document, and its check: all problems at once, each with its place and a hint.

`connector.schema.json` beside this file is its JSON Schema, which editors can use. What a schema cannot express is
checked here: that every placeholder is a field, that a path's fields are required, that fields of one name are the same
field.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NoReturn

import msgspec
import orjson
from msgspec import Struct, field

from compiler.references import escape
from compiler.schema import schema_error
from executor.blocks.connectors.template import names_in
from executor.errors import BadRequest
from executor.kernel.values.schema import violations

FORMAT: Final = "weft-connector/1"
BYTES_MAX: Final = 1024 * 1024
# Params that every connector has beside its fields. `connection`: for stored credentials, of which there are none yet.
RESERVED: Final = frozenset(
    {"operation", "credential", "connection", "base_url", "pages_max", "region", "timeout_s",
     "idempotency_key", "idempotency_uuid", "idempotency_hex", "since", "since_s", "found", "delivery"}
)  # fmt: skip
# Fields of one name may differ in these.
_APART: Final = frozenset({"title", "description", "default", "x-ui", "choices"})
# Identify the execution of the block in its requests, and in those that check it.
SENT: Final = ("idempotency_key", "idempotency_uuid", "idempotency_hex")
ASKED: Final = (*SENT, "since", "since_s")
# Requests about registrations have these beside, such as the address of this server, and a name for it.
HOOK: Final = ("hook_url", "hook_name", "hook_secret", "hook_id", "hook_expires")


class Auth(Struct, frozen=True):
    """`name` and `prefix` are of kinds header and query; kind path: `{{credential}}` stands in `base_url`. Kind aws
    signs each request for the service `name`; `{{region}}` may stand in `base_url`. `provider`: the well-known OAuth
    provider whose tokens the service takes, with the `scopes` that the operations need."""

    kind: Literal["none", "bearer", "basic", "header", "query", "path", "aws"] = "none"
    title: str = "Credential"
    description: str = ""
    name: str = "Authorization"
    prefix: str = ""
    provider: str = ""
    scopes: str = ""


class Pages(Struct, frozen=True):
    """The way to read a long list. `items` and `next` are JSON pointers into the answer; `name` is the field of the
    query (or, `into` body, of the body) that requests the next page; or a JSON pointer to it there.

    cursor  `next` has the value that requests the next page
    link    the header Link has its address, or `next` has it
    page    pages have numbers from `first`; one with fewer than `size` items is the last
    offset  a page begins after so many items; one with fewer than `size` items is the last
    last    `next` of the last item requests the next page; one with fewer than `size` items is the last

    With `more`, a page is the last if nothing is there. `path` is added to the address for further pages, which are
    requested with no more than the cursor in the body.
    """

    kind: Literal["cursor", "link", "page", "offset", "last"]
    items: str = ""
    next: str | None = None
    name: str = "page"
    into: Literal["query", "body"] = "query"
    first: int = 1
    size: int = 100
    more: str | None = None
    path: str = ""


class Refusal(Struct, frozen=True):
    """An answer with a good status that reports failure: the value `at` the pointer equals `equals`, or without that is
    there and not empty. `message`: where the reason is; `retry`: reasons after which another try may succeed."""

    at: str
    equals: Any = None
    message: str = ""
    retry: tuple[str, ...] = ()


class Check(Struct, frozen=True):
    """The request that finds the effect of an earlier attempt, and how to read its answer. `items`, `more`, `mark`,
    `doubt` and those in `take` are JSON pointers: the first two into the answer, the others into an item.

    needs     it is for operations with a value in these fields
    items     where the list is in which the item would be
    mark      where an item has the key that the operation sent
    more      true there: the list continues, so an item that is not in it may exist all the same
    size      a list with so many items continues, too
    doubt     an item that has something here, and nothing at `mark`, may be it
    settle_s  an item that is missing so long after the request was sent does not exist
    output    the answer that the operation would have given: `{{found}}` is the item, `take` names parts of it
    """

    path: str
    items: str
    mark: str
    method: Literal["GET", "POST"] = "GET"
    query: dict[str, Any] = {}
    body: Any = None
    needs: tuple[str, ...] = ()
    more: str | None = None
    size: int = 100
    doubt: str | None = None
    settle_s: float = 10
    take: dict[str, str] = {}
    output: Any = "{{found}}"


class SignInCheck(Struct, frozen=True):
    """The request that a test of a connection sends: it changes nothing, and the service reports who is signed in.
    `who`: JSON pointers to the parts of the name; `accepted`: statuses above 400 that mean that the credential is
    good."""

    path: str
    method: Literal["GET", "POST"] = "GET"
    body: Any = None
    who: tuple[str, ...] = ()
    accepted: tuple[int, ...] = ()


class Choices(Struct, frozen=True, rename={"fixed": "with"}):
    """The choices that a form offers for a field: the items that an operation returns. `value`, `title` and `about` are
    JSON pointers into an item.

    items    where the list is in the answer of an operation without `pages`
    element  for an answer in XML: the elements of this name are the items
    search   the field of the operation that takes the text typed; without it, the items read are searched
    with     fields of the operation: constants, or `{{name}}` of a field of the block
    only     pointers into an item, with the values there of those that are offered, as in `with`
    """

    operation: str
    value: str = ""
    title: str = ""
    about: str = ""
    items: str = ""
    element: str = ""
    search: str = ""
    fixed: dict[str, Any] = {}
    only: dict[str, list[Any]] = {}

    def needs(self, operation: Operation) -> list[str]:
        """Return the fields of the block without which `operation` cannot list the items."""
        required = (name for name in operation.required if name not in (*self.fixed, self.search))
        own = [name for name in required if "default" not in operation.fields.get(name, {})]
        return list(dict.fromkeys((*names_in(self.fixed), *names_in(list(self.only.values())), *own)))


class Operation(Struct, frozen=True):
    """A request of the service. `reads`: it changes nothing, which is implied for GET and HEAD. `idempotent`: a second
    request with the same fields does no harm; `idempotent_s`: for that long after the first one. `check`: how to find
    the effect of a lost attempt; the first one counts whose `needs` are given. For any other operation, a person
    decides about a lost attempt. `base_url`: in place of that of the document. A field may have `choices`."""

    title: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    path: str = ""
    base_url: str = ""
    description: str = ""
    reads: bool = False
    idempotent: bool = False
    idempotent_s: int = 0
    fields: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: Any = None
    output: dict[str, Any] | None = None
    pages: Pages | None = None
    check: tuple[Check, ...] = ()

    @property
    def only_reads(self) -> bool:
        return self.reads or self.method in ("GET", "HEAD")


class Scheme(Struct, frozen=True):
    """The proof of a delivery: with the secret of its registration.

    hmac   `header` has `prefix` and the HMAC-SHA256 of the body; with `stamp`, of the time, a dot and the body. The
           time is in the header of this name, or if it ends with `=`, in a part of `header`, of several with commas
    token  `header` has `prefix` and the secret
    body   each item of the list at `items` has the secret, `at` a pointer into it

    `key`: how the secret is written; `encoding`: how the signature is. `name`: the header with the name of a delivery.
    """

    kind: Literal["hmac", "token", "body"] = "hmac"
    header: str = ""
    prefix: str = ""
    stamp: str = ""
    key: Literal["text", "base64"] = "text"
    encoding: Literal["hex", "base64"] = "hex"
    items: str = ""
    at: str = ""
    name: str = ""


class HookCall(Struct, frozen=True):
    """A request about registrations. Beside the fields of the event it has what its `push` sets, and those in HOOK."""

    path: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    base_url: str = ""
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: Any = None


class Hooks(Struct, frozen=True):
    """The way to register at the service for its events. `id`, `url`, `expires` and `secret` are JSON pointers into a
    registration: `made` leads to it in the answer of `create` and `renew`, `items` to all in that of `list`.

    before     a request before all others, and `take`: what they get from its answer
    secret     the service chooses it; without it, and without a `handshake` in a header, this server does
    lasts_s    how long a registration is asked for, {{hook_expires}}
    handshake  the service first sends a header with its secret, or a field of the query, which are to be sent back
    """

    create: HookCall
    list: HookCall
    delete: HookCall
    proof: Scheme
    renew: HookCall | None = None
    before: HookCall | None = None
    take: dict[str, str] = {}
    items: str = ""
    pages: Pages | None = None
    made: str = ""
    id: str = "/id"
    url: str = "/url"
    expires: str = ""
    secret: str = ""
    lasts_s: int = 0
    handshake: dict[Literal["header", "query"], str] = {}

    @property
    def chooses_secret(self) -> bool:
        """Return True if the service does."""
        return bool(self.secret or "header" in self.handshake)


class EventTime(Struct, frozen=True):
    """`at`: where an item has its time, or a number that grows; `field` takes the last one at the next poll. With `#`
    it takes the time of the first poll, in Unix seconds."""

    at: str
    field: str = ""


class EventList(Struct, frozen=True):
    """A list whose new items are events, read by `operation` with the values `set`. `id`: what identifies an item, by
    pointers into it, or `#`, its place in a list that only grows. `only`: values that an item must have. `push`: the
    service can report that there may be new ones; what its registration has for that."""

    title: str
    operation: str
    id: str | tuple[str, ...]
    description: str = ""
    set: dict[str, Any] = {}
    items: str | None = None
    order: Literal["newest", "oldest", "any"] = "newest"
    time: EventTime | None = None
    only: dict[str, Any] = {}
    pages: Pages | None = None
    output: dict[str, Any] | None = None
    push: dict[str, Any] | None = None


class Connector(Struct, frozen=True):
    """`fields` are those of all operations, such as the name of an account that is a part of `base_url`; `trusted` adds
    them to each."""

    format: str
    service: str
    title: str
    base_url: str
    operations: dict[str, Operation]
    events: dict[str, EventList] = {}
    hooks: Hooks | None = None
    description: str = ""
    docs: str = ""
    icon: str = "http"
    auth: Auth = Auth()
    sign_in: SignInCheck | None = None
    headers: dict[str, str] = {}
    fields: dict[str, Any] = {}
    refused: tuple[Refusal, ...] = ()
    comment: str = field(default="", name="$comment")
    schema: str = field(default="", name="$schema")


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


def trusted(document: Any) -> Connector:
    """Decode a document that was checked before, such as those that come with weft, which a test checks."""
    connector = msgspec.convert(document, Connector)
    if not (common := connector.fields):
        return connector
    needed = tuple(name for name, its in common.items() if "default" not in its)
    of_all = {
        id: msgspec.structs.replace(one, fields={**common, **one.fields}, required=(*needed, *one.required))
        for id, one in connector.operations.items()
    }
    return msgspec.structs.replace(connector, operations=of_all)


def choices_of(connector: Connector) -> dict[str, Choices]:
    """Return what the form offers, by field: those of the first operation that has `choices` for it."""
    found: dict[str, Choices] = {}
    for operation in connector.operations.values():
        for name, its in operation.fields.items():
            if "choices" in its and name not in found:
                found[name] = msgspec.convert(its["choices"], Choices)
    return found


@cache
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(files(__package__).joinpath("connector.schema.json").read_bytes())
    return loaded


def type_of(schema: Any) -> tuple[str, ...]:
    named = schema.get("type") if isinstance(schema, dict) else None
    listed = named if isinstance(named, list) else [named]
    return tuple(str(name) for name in listed if name not in (None, "null"))


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
