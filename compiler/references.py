"""The text of references: `<draft.content[0] ?? "none">` and `${API_KEY}`. Finds and parses; binding is `bind.py`.

It has no knowledge of blocks: a candidate is text that *looks* like a reference, and text without a known name stays as
it is. So `a < b and c > d` stays text for two reasons: the blank after `<`, and the unknown name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct

# Each alternative starts with a different character, so a match never backtracks; a candidate ends at the next `<` at
# the latest, so a text of n characters costs O(n) whatever it holds.
_HEAD = r"""\w(?:[^<>\[\]{}?"`\n]|\[\d{1,9}\]|\["[^"\\<>\n]*"\]|\?(?!\?))*"""
_DEFAULT = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\\<>\n]*'|[^<>"'`\n])+"""
REFERENCE = re.compile(rf"<({_HEAD}(?:\?\?{_DEFAULT})?)>")
ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CANDIDATE = re.compile(rf"{REFERENCE.pattern}|{ENV.pattern}")
_PART = re.compile(r"""\.([^.\[\]]*)|\[(\d+)\]|\["([^"]*)"\]""")
STEPS_MAX = 100  # values nest 64 deep, and some names hold dots; what has more steps is no reference
_BLANKS = re.compile(r"[\s.]+")


class Found(Struct, frozen=True):
    """A candidate. `text` stands between its brackets; `start:end` spans all of it in the searched text."""

    text: str
    start: int
    end: int
    env: bool

    @property
    def key(self) -> str:
        """The key of bindings in code and of `Ref.text`: `${NAME}` for env, else `text`."""
        return f"${{{self.text}}}" if self.env else self.text


class Parsed(Struct, frozen=True):
    """`Draft one.content[0].x ?? 0` -> segments ("Draft one", "content", 0, "x"), default "0"."""

    segments: tuple[str | int, ...]
    default: str | None = None


def find(text: str) -> list[Found]:
    """Every candidate, left to right, none overlapping."""
    if "<" not in text and "${" not in text:
        return []
    found = []
    for match in _CANDIDATE.finditer(text):
        env = match[1] is None
        found.append(Found(match[2] if env else match[1], match.start(), match.end(), env))
    return found


def parse(text: str) -> Parsed | None:
    """Return the segments and the default of a reference text (without its brackets), or None if it cannot be one.

    Segments are as written, blanks around them removed; `[0]` gives an int, `["k"]` a str. The default is any JSON
    value; a 'single-quoted' text is taken as JSON text.
    """
    head, mark, tail = text.partition("??")
    default = _default(tail.strip()) if mark else None
    if mark and default is None:
        return None
    segments = _segments(head.strip())
    return Parsed(segments, default) if segments else None


def normalize(name: str) -> str:
    """Return a name as it is compared: `Draft v1.2` and `<draftv12>` are the same."""
    return unblanked(name).lower()


def unblanked(name: str) -> str:
    return _BLANKS.sub("", name)


def texts(params: Any, code: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    """(JSON pointer, text, is it in `code`) of every text value in `params`, depth first in document order."""
    stack: list[tuple[str, Any]] = [("", params)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, str):
            yield pointer, value, pointer in code
        elif isinstance(value, dict):
            stack.extend((f"{pointer}/{escape(str(k))}", v) for k, v in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend((f"{pointer}/{i}", value[i]) for i in range(len(value) - 1, -1, -1))


def escape(part: str) -> str:
    """Escape one step of a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1") if "~" in part or "/" in part else part


def unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _segments(head: str) -> tuple[str | int, ...]:
    cut = min((i for i in (head.find("."), head.find("[")) if i >= 0), default=len(head))
    first = head[:cut].strip()
    if not first:
        return ()
    segments: list[str | int] = [first]
    at = cut
    while at < len(head):
        match = _PART.match(head, at)
        if match is None or len(segments) > STEPS_MAX:
            return ()
        name, index, key = match[1], match[2], match[3]
        if index is not None:
            segments.append(int(index))
        elif key is not None:
            segments.append(key)
        elif name.strip():
            segments.append(name.strip())
        else:
            return ()
        at = match.end()
    return tuple(segments)


def _default(text: str) -> str | None:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return msgspec.json.encode(text[1:-1]).decode()
    try:
        return msgspec.json.encode(msgspec.json.decode(text)).decode()
    except (msgspec.DecodeError, RecursionError):
        return None
