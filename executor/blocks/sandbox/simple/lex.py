"""The tokens of a simple expression."""

from __future__ import annotations

import json
import re
from typing import Final

_TOKENS_MAX: Final = 200
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<number>(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?(?![\w$.\\]|[^\x00-\x7f]))
    | (?P<text>
        "(?:[^"\\\x00-\x1f\u2028\u2029\ud800-\udfff]|\\["\\/bfnrtu])*"
      | '[^'\\\x00-\x1f\u2028\u2029\ud800-\udfff]*'
      )
    | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*(?![\w$\\]|[^\x00-\x7f]))
    | (?P<sign>
        ===|!==|==|!=|<=|>=|&&|\|\||\?\?|[()\[\]:.!%]
      | \?(?!\.)|<(?![<!])|>(?!>)|\+(?!\+)|-(?!-)|\*(?!\*)|/(?![/*])
      )
    )""",
    re.VERBOSE,
)
END: Final = ("end", "")


class NotSimple(Exception):
    """The expression needs the guest."""


def tokens_of(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(source.rstrip(" \t\r\n"))
    while at < end:
        match = _TOKEN.match(source, at)
        if match is None or match.lastgroup is None or len(found) >= _TOKENS_MAX:
            raise NotSimple
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, END]


def text_of(token: str) -> str:
    """A JSON string is the same in JavaScript; the compiler writes the names of references in double quotes."""
    if token[0] == "'":
        return token[1:-1]
    try:
        text: str = json.loads(token)
    except ValueError:
        raise NotSimple from None
    if not is_well_formed(text):
        raise NotSimple
    return text


def is_well_formed(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
