"""Redis commands by the table `redis_commands.json`: which only read, which wait, which are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_.]*( [A-Z][A-Z0-9-]*)?")
_OPTION: Final = "BLOCK"  # followed by a time in milliseconds


class Command(Struct, frozen=True):
    """A command of one or two words, in capitals. `timeout_s` is for all of it. `parse`: texts of the answer that are
    JSON become values."""

    name: str
    arguments: Sequence[str] = ()
    timeout_s: float = 30.0
    parse: bool = False

    @property
    def reads(self) -> bool:
        return only_reads(self.name)


class _Refused(Struct, frozen=True):
    """`commands`: whole names, or first words."""

    why: str
    hint: str
    commands: frozenset[str]


class _Table(Struct, frozen=True):
    """`containers`: first words that need a second one. `waits`: the argument that has the seconds; None if the option
    BLOCK has them. The facts are those of COMMAND (its flags) of Redis 8 and Valkey 9."""

    reads: frozenset[str]
    containers: frozenset[str]
    waits: dict[str, int | None]
    refused: list[_Refused]


@cache
def _table() -> _Table:
    return msgspec.json.decode(Path(__file__).with_name("redis_commands.json").read_bytes(), type=_Table)


def only_reads(name: str) -> bool:
    return " ".join(name.upper().split()) in _table().reads


def refusal(name: str) -> tuple[str, str] | None:
    """Return why a block does not send this command, and what to do instead."""
    table, words = _table(), name.upper().split()
    whole, first = " ".join(words), words[0]
    if whole in table.reads:
        return None
    if _NAME.fullmatch(whole) is None:
        return f"{name[:40]!r} is not the name of a command", "Write its name here, and the rest into the arguments."
    for group in table.refused:
        if whole in group.commands or first in group.commands:
            return f"{whole} {group.why}", group.hint
    if first in table.containers and len(words) == 1:
        return f"{whole} has a second word", "Write both words here, as in XINFO STREAM."
    if len(words) > 1 and first not in table.containers:
        return f"{first} has no second word", "Write what follows it into the arguments."
    return None


def waits_s(command: Command) -> float | None:
    """Return how long a command waits at the server, infinity if it sets no end, or None if it does not wait."""
    waits = _table().waits
    if command.name not in waits:
        return None
    at, unit = waits[command.name], 1
    if at is None:
        options = [argument.upper() for argument in command.arguments]
        options = options[: options.index("STREAMS")] if "STREAMS" in options else options
        if _OPTION not in options:
            return None
        at, unit = options.index(_OPTION) + 1, 1000
    try:
        return float(command.arguments[at]) / unit or math.inf
    except (IndexError, ValueError):
        return math.inf
