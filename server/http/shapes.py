"""What the shapes of all topics share: the bounds of names and numbers, each written once, refusals, and the JSON of
responses. Times are Unix milliseconds. Stored JSON (outputs, inputs, event
data) is spliced in as the bytes it was stored as (`orjson.Fragment`) and never parsed on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
import orjson
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType

from compiler.diagnostics import Diagnostic
from executor.kernel.store.statements import COUNT_MAX, RunStatus
from executor.kernel.store.topics.waits import WaitStatus
from executor.kernel.store.topics.workflows import VERSION_MAX

Status = TypeVar("Status", RunStatus, WaitStatus)


DraftName = Annotated[str, Meta(max_length=200)]


PersonName = Annotated[str, Meta(max_length=200)]


ShortText = Annotated[str, Meta(max_length=500)]


AnyJson = Annotated[Any, Meta(description="Any JSON.")]


Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]


PAGE_MAX = 1000


EVENTS_PAGE_MAX = 10_000


PREVIEW_BYTES_MAX = 16 * 1024 * 1024  # as large as any output


WAIT_S_MAX = 60.0


# Query parameters that several routes have.
Preview = Annotated[
    int,
    Meta(
        ge=0,
        le=PREVIEW_BYTES_MAX,
        description="Cut outputs over this many bytes: `output` is then null, `truncated` true, `size` the number of "
        "bytes, and `preview` has the beginning of the JSON. The whole is at /api/runs/{id}/nodes/{key}.",
    ),
]


StoredVersion = Annotated[int, Meta(ge=1, description="A stored version. Default: the active one.")]


def capped(counts: Mapping[Status, int]) -> list[Status]:
    """Return the statuses whose count stopped at COUNT_MAX."""
    return [status for status, count in counts.items() if count >= COUNT_MAX]


def fragment(data: bytes | None) -> Any:
    """Stored JSON, spliced in as it is; None becomes null."""
    return None if data is None else orjson.Fragment(data)


_EMPTY = (list, dict, set)


def to_json(value: Any) -> bytes:
    """JSON of structs, fragments and plain values together."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def beginning(data: bytes, length: int) -> str:
    """Return the first `length` characters of JSON bytes, with `...` at the end if there are more."""
    text = data[: 4 * (length + 1)].decode(errors="ignore")  # no character takes more than four bytes
    return text if len(text) <= length else text[:length] + "..."


def _plain(value: Any) -> Any:
    """Convert one level of a struct: large values in it are encoded where they are, not copied first."""
    members = _members(type(value)) if isinstance(value, Struct) else None
    if members is None:
        return msgspec.to_builtins(value, builtin_types=(orjson.Fragment,))
    return {
        name: member
        for name, field, default, empty in members
        if (member := getattr(value, field)) is not default
        and member is not UNSET
        and (empty is None or member or type(member) is not empty)
    }


@cache
def _members(of: type[Struct]) -> tuple[tuple[str, str, Any, type | None], ...] | None:
    """Return the names of the members in JSON and in Python, and the omitted values: this object, and an empty one of
    this type, as msgspec does. Returns None if JSON has the struct in another form."""
    config = of.__struct_config__
    if config.tag is not None or config.array_like:
        return None
    found: list[tuple[str, str, Any, type | None]] = []
    for field in msgspec.structs.fields(of):
        default, empty = UNSET, None
        if config.omit_defaults and field.default is not NODEFAULT:
            default = field.default
        elif config.omit_defaults and field.default_factory in _EMPTY:
            empty = field.default_factory
        found.append((field.encode_name, field.name, default, empty))
    return tuple(found)


USER_ID = r"^[a-z0-9][a-z0-9._@-]{0,99}$"


class Problem(Struct, frozen=True):
    """A refusal, RFC 9457. More members by code."""

    type: str
    title: str
    status: int
    code: Annotated[str, Meta(description="Stable code for programs.")]
    detail: Annotated[str, Meta(description="Description for people.")]
    pointer: Annotated[str, Meta(description="RFC 6901 pointer into the request body.")] | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    diagnostics: list[Diagnostic] | UnsetType = UNSET
