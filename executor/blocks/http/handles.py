"""Handles: blocks hold them in the place of secrets. Only the client that dials opens them.

A handle is a random text of small letters and digits, so that no encoder changes it. Its second part is the encoding of
the value at its place. Outside of the block call that got it, it is worth nothing.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import quote_plus

How = Literal["r", "j", "f", "b"]  # as it is; inside a JSON text; in a form or query; in base64
_PREFIX: Final = "wefth"
_HANDLE: Final = re.compile(rf"{_PREFIX}([rjfb])([0-9a-f]{{32}})")
_HANDLE_BYTES: Final = re.compile(_HANDLE.pattern.encode())
_WRITERS: Final[dict[str, Callable[[str], str]]] = {
    "r": str,
    "j": lambda value: json.dumps(value)[1:-1],
    "f": quote_plus,
    "b": lambda value: base64.b64encode(value.encode()).decode(),
}
# Everything before the path decides where a URL is dialled. Some read a backslash as a slash.
_AUTHORITY: Final = re.compile(r"\s*(?:[^/?#\\]*:)?(?:[/\\]{2}[^/?#\\]*|[^/?#\\]*)")


def new_handle() -> str:
    return f"{_PREFIX}r{secrets.token_hex(16)}"


def has_handle(text: str | bytes) -> bool:
    return (_HANDLE_BYTES.search(text) if isinstance(text, bytes) else _HANDLE.search(text)) is not None


def handles_in(text: str) -> list[str]:
    return list(dict.fromkeys(f"{_PREFIX}r{found[2]}" for found in _HANDLE.finditer(text)))


def written_as(text: str, how: How) -> str:
    """Return the text with its plain handles in the form `how`."""
    return re.sub(rf"{_PREFIX}r(?=[0-9a-f]{{32}})", f"{_PREFIX}{how}", text)


def in_first_form(text: str) -> str:
    """Return the text with its handles as blocks hold them, for showing and recording."""
    return _HANDLE.sub(rf"{_PREFIX}r\2", text)


def in_authority(url: str) -> bool:
    found = _AUTHORITY.match(url)
    return found is not None and has_handle(found[0])


def filled(text: str, value_of: Callable[[str], str]) -> str:
    """Replace handles with their values. `value_of` gets a handle in its first form."""
    return _HANDLE.sub(lambda found: _WRITERS[found[1]](value_of(f"{_PREFIX}r{found[2]}")), text)


def filled_bytes(data: bytes, value_of: Callable[[str], str]) -> bytes:
    def value(found: re.Match[bytes]) -> bytes:
        return filled(found[0].decode(), value_of).encode("utf-8", "surrogatepass")

    return _HANDLE_BYTES.sub(value, data)
