"""A file as a value: {"type": "file", "id", "name", "media_type", "size"}. Its bytes are in the store
(`executor.kernel.values.files`); blocks pass the value on like any other.

Its name is a label and never a path: what people call their files is not used to find one.
"""

from __future__ import annotations

import mimetypes
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from executor.kernel.store.topics.contents import FileHead

NAME_CHARS_MAX: Final = 200
UNNAMED: Final = "file"
ANY_MEDIA: Final = "application/octet-stream"
FORMAT: Final = "file"  # `format` of a JSON Schema
# The schema of the value: its fields, for references.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "format": FORMAT,
    "properties": {
        "type": {"const": "file"},
        "id": {"type": "string"},
        "name": {"type": "string"},
        "media_type": {"type": "string"},
        "size": {"type": "integer"},
    },
}
_ID = re.compile(r"file_[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,99}/[a-z0-9][a-z0-9!#$&^_.+-]{0,99}")
_KNOWN = mimetypes.MimeTypes()  # what Python knows, and nothing of this machine
for _suffix, _type in {
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
}.items():
    _KNOWN.add_type(_type, _suffix)


class File(Struct, frozen=True):
    """A file that is stored."""

    id: str
    name: str
    media_type: str
    size: int

    @property
    def value(self) -> dict[str, Any]:
        return {"type": "file", "id": self.id, "name": self.name, "media_type": self.media_type, "size": self.size}


def file_of(id: str, head: FileHead) -> File:
    return File(id, head.name, head.media_type, head.size)


def is_file_id(text: Any) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def is_file(value: Any) -> bool:
    """Does the value name a file? There may be no such file."""
    return isinstance(value, Mapping) and value.get("type") == "file" and is_file_id(value.get("id"))


def files_of(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON pointer and value of each file in it, in order."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        pointer, item = stack.pop()
        if isinstance(item, dict):
            if is_file(item):
                yield pointer, item
                continue
            inner = [(f"{pointer}/{_escape(key)}", below) for key, below in item.items()]
        elif isinstance(item, list):
            inner = [(f"{pointer}/{n}", below) for n, below in enumerate(item)]
        else:
            continue
        stack.extend(reversed(inner))


def clean_name(name: str) -> str:
    """Return the last part of a path, without what cannot be seen and what steers a terminal, a header or the direction
    of text; NAME_CHARS_MAX characters at most, the suffix among them."""
    text = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])
    text = "".join(char for char in text if unicodedata.category(char) not in _UNSEEN)
    text = text.strip(" .") if text.strip(" .") == "" else text.strip()
    if len(text) > NAME_CHARS_MAX:
        stem, dot, suffix = text.rpartition(".")
        end = dot + suffix if dot and len(suffix) <= 10 else ""
        text = (stem if end else text)[: NAME_CHARS_MAX - len(end)] + end
    return text or UNNAMED


_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean_media_type(media_type: str | None, name: str) -> str:
    """Return the media type in lower case and without parameters. If there is none, or a general one, the suffix of the
    name decides."""
    text = (media_type or "").partition(";")[0].strip().lower()
    if _MEDIA_TYPE.fullmatch(text) and text != ANY_MEDIA:
        return text
    return _KNOWN.guess_type(f"x/{name}")[0] or ANY_MEDIA


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
