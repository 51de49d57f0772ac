"""Messages to the owner of a run: what other parts of the program put into its inbox, and one run sends another.

A message lies in a row of the store until the run's loop reads it and makes facts of it. It crosses processes and
versions: `tag` and the names of fields are for ever, a new field has a default, and an owner of an older version must
be able to do without it.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from msgspec import Raw, Struct, ValidationError

from executor.kernel.core.events import ErrorInfo, RunEnd


class Cancel(Struct, frozen=True, tag="cancel", omit_defaults=True):
    """The run is to end: the only message that it must read before it ends by itself. See `facts.CancelRequested`."""

    reason: str = ""
    now: bool = False
    asked: bool = False


class Answer(Struct, frozen=True, tag="answer", omit_defaults=True):
    """The wait was answered: by a person with `fields` and `action`, or by a program with the whole `output`.
    `refused`: the block lists this action among those that it fails on."""

    wait: str
    at_ms: int
    fields: dict[str, Any] | None = None
    action: str | None = None
    output: dict[str, Any] | None = None
    by: str | None = None
    refused: bool = False


class Withdrawn(Struct, frozen=True, tag="withdrawn", omit_defaults=True):
    """The wait was cancelled, by a person or a program: its block fails."""

    wait: str
    at_ms: int
    by: str | None = None
    reason: str | None = None


class Expired(Struct, frozen=True, tag="expired"):
    """The wait was not answered in time."""

    wait: str
    at_ms: int


class ChildEnded(Struct, frozen=True, tag="child", omit_defaults=True):
    """The run that the wait waits for has ended. `output` is that of its block if it succeeded."""

    wait: str
    run: str
    status: RunEnd
    output: Raw = Raw(b"null")
    error: ErrorInfo | None = None


class SignalSent(Struct, frozen=True, tag="signal"):
    """There is a new row among the signals of the run; `name` is for people who read the inbox."""

    name: str


class Retry(Struct, frozen=True, tag="retry"):
    """The next attempt of the node `key` (its text) is to start now."""

    key: str


class Migrate(Struct, frozen=True, tag="migrate"):
    """The run is to follow another version, whose stored plan has this hash. `request` distinguishes such messages."""

    version: int
    plan: str
    request: str


class Unknown(Struct, frozen=True):
    """A message of a later version; it is never written."""

    type: str


Known = Cancel | Answer | Withdrawn | Expired | ChildEnded | SignalSent | Retry | Migrate
Message = Known | Unknown

_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Known))
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_type = msgspec.json.Decoder(Unknown)


def encode(message: Known) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """Raises ValidationError, DecodeError: it is not a message of this or a later version."""
    try:
        return _decoder.decode(data)
    except ValidationError:
        unknown = _type.decode(data)
        if unknown.type in _TYPES:
            raise
        return unknown
