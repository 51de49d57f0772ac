"""A connector document. `validate.py` checks one, and reads one that may be wrong."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from executor.blocks.connectors.template import names_in

FORMAT: Final = "weft-connector/1"
BYTES_MAX: Final = 1024 * 1024
# Params that every connector and its triggers have beside their fields, and names with a meaning in requests.
RESERVED: Final = frozenset(
    {"operation", "credential", "connection", "base_url", "pages_max", "region", "timeout_s",
     "idempotency_key", "idempotency_uuid", "idempotency_hex", "since", "since_s", "found", "delivery"}
)  # fmt: skip
# Identify the execution of the block in its requests, and in those that check it.
SENT: Final = ("idempotency_key", "idempotency_uuid", "idempotency_hex")
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


def type_of(schema: Any) -> tuple[str, ...]:
    named = schema.get("type") if isinstance(schema, dict) else None
    listed = named if isinstance(named, list) else [named]
    return tuple(str(name) for name in listed if name not in (None, "null"))
