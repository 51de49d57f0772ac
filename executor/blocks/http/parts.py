"""The places in a request where a secret may stand: `header:NAME`, `query:NAME`, `path`, `body`.

The parameters of a header, `text/plain; charset=utf-8`, are bounded here, too: the library reads them in the square of
their number, and 30 KB of semicolons stop the event loop for a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.message import Message
from typing import Final
from urllib.parse import unquote_plus

from executor.errors import BadRequest

Part = tuple[str, str | bytes]
ADDRESS: Final = "the address of a database"
SIGN_IN: Final = "the sign-in"  # of a connection at a mail server or a database; `--in` cannot name it
PLACES_MAX: Final = 20
_PLACE: Final = re.compile(r"header:[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}|query:[^\s,&=#]{1,100}|path|body")


def parts_of(url: str, headers: Mapping[str, str], body: bytes | None) -> list[Part]:
    """Return the parts of a request. The query is one part; `place_of` reads its parameters."""
    path, _, query = url.partition("?")
    heads = ((f"header:{name}", f"{name}: {value}") for name, value in headers.items())
    return [("path", path), ("query", query), *heads, ("body", body or b"")]


def text_of(part: Part) -> str:
    return part[1].decode(errors="replace") if isinstance(part[1], bytes) else part[1]


def place_of(parts: Iterable[Part], permitted: Sequence[str], is_in: Callable[[str], bool]) -> str | None:
    """Return the first other place in which `is_in` finds the secret, or None. Its name has no part of the secret."""
    known = {_comparable(place) for place in permitted}
    for part in parts:
        place, text = part[0], ""
        if place == "query":
            pairs = [(f"query:{unquote_plus(pair.partition('=')[0])}", pair) for pair in text_of(part).split("&")]
            rest = [pair for pair in pairs if pair[0] not in known]
            if is_in("&".join(text for _, text in rest)):
                named = [name for name, text in rest if is_in(text) and not is_in(name)]
                return named[0] if named else place
        elif _comparable(place) not in known:
            text = text_of(part)
            if text and is_in(text):
                return "a header" if place.startswith("header:") and is_in(place) else place
    return None


def checked_places(places: Sequence[str]) -> tuple[str, ...]:
    found = tuple({_comparable(place): place for place in map(str.strip, places)}.values())
    wrong = next((place for place in found if not is_place(place)), None)
    if wrong is not None or len(found) > PLACES_MAX:
        what = f"{wrong[:100]!r} is not a place in a request" if wrong is not None else None
        raise BadRequest(
            what or f"there can be at most {PLACES_MAX} places",
            code="secret_places_invalid",
            pointer="/places",
            hint="such as header:Authorization, query:key, path or body",
        )
    return found


def is_place(text: str) -> bool:
    return _PLACE.fullmatch(text) is not None


def _comparable(place: str) -> str:
    """Return the place in the form in which equal places are equal: names of headers have no case."""
    return place.lower() if place.startswith("header:") else place


PARAMETERS_MAX: Final = 64


def are_too_many(text: str) -> bool:
    return text.count(";") > PARAMETERS_MAX


def header_of(name: str, value: str) -> Message:
    message = Message()
    message[name] = value.partition(";")[0] if are_too_many(value) else value
    return message
