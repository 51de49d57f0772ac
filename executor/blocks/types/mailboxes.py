"""Mail addresses in params: one mailbox an item, `ada@example.org` or `Ada Lovelace <ada@example.org>`.

Only commas that the author of the document wrote separate items. The value of a reference is part of one item, with any
content, so the data of a run never adds a recipient. Groups and routes of RFC 5322 do not exist here.
"""

from __future__ import annotations

import re
from typing import Any

from executor.blocks.types.params import invalid
from executor.kernel.values.resolve import written

_SPECIAL = r"\s<>()\[\],;:\\\"\x00-\x1f\x7f"
_ADDRESS = re.compile(rf"[^@{_SPECIAL}]+@[^@{_SPECIAL}]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SHOWN = 80
HINT = "use one address per item; a text with commas is possible only in the document itself"


def items_of(value: Any, name: str) -> list[str]:
    """Return the items of a text or of a list of texts; empty ones are left out. Raises BlockError(params_invalid)."""
    if value is None or value == "":
        return []
    if isinstance(value, list):
        if not all(isinstance(item, str) for item in value):
            raise invalid(f"{name} must contain addresses as text")
        found = value
    elif isinstance(value, str):
        found = _split(value)
    else:
        raise invalid(f"{name} must contain addresses as text")
    for item in found:
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in item):
            raise invalid(f"{name} contains a line break or another control character")
    return [str(item) for item in found if item.strip()]


def mailbox(item: str, name: str) -> tuple[str, str]:
    """Return (name, address). The address is the text in the last angle brackets, or all of the item; the text before
    the brackets is a name, including commas. Raises BlockError(params_invalid)."""
    text = item.strip()
    shown, address = "", text
    if text.endswith(">"):
        shown, _, rest = text.rpartition("<")
        address = rest[:-1].strip()
    if _ADDRESS.fullmatch(address) is None or "=?" in address:
        raise invalid(f"{name} contains {text[:_SHOWN]!r}, which is not a mail address", hint=HINT)
    shown = shown.strip()
    quoted = _QUOTED.fullmatch(shown)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else shown, address


def mailboxes(value: Any, name: str) -> list[tuple[str, str]]:
    """Return (name, address) of each. Raises BlockError(params_invalid), also for a value without an address."""
    found = [mailbox(item, name) for item in items_of(value, name)]
    if not found and value and (not isinstance(value, str) or value.strip()):
        raise invalid(f"{name} contains no mail address", hint=HINT)
    return found


def _split(text: str) -> list[str]:
    """Split at commas that the author wrote, outside of quotes that the author wrote."""
    by_author, quoted, start = written(text), False, 0
    items: list[str] = []
    for at, character in enumerate(text):
        if not by_author[at]:
            continue
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            items.append(text[start:at])
            start = at + 1
    return [*items, text[start:]]
