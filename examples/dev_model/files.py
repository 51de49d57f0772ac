"""Files in requests to the scripted model: decoded, checked and described, as a model that sees them would."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

_DATA_URL: Final = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)
_PAGE: Final = re.compile(rb"/Type\s*/Page\b")
_KEPT: Final = 60  # characters of a file in GET /calls


class Seen(Struct, frozen=True):
    """A file of the last message. `about` has its type, size and, if they are found, its dimensions."""

    media_type: str
    size: int
    about: str


def of_url(url: str) -> Seen:
    """Return the file in a `data:` URL. Raises ValueError."""
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise ValueError("a file must be a data: URL in base64")
    return of_base64(found[1], found[2])


def of_base64(media_type: str, text: str) -> Seen:
    """Raises ValueError: it is no base64, or no file of this type."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"a file is no base64: {error}") from None
    about = f"{media_type}, {len(data)} bytes"
    match media_type:
        case "image/png":
            if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
                raise ValueError("this is no PNG image")
            width, height = struct.unpack(">II", data[16:24])
            about += f", {width} x {height}"
        case "image/jpeg" if data[:3] != b"\xff\xd8\xff":
            raise ValueError("this is no JPEG image")
        case "image/gif":
            if data[:4] != b"GIF8":
                raise ValueError("this is no GIF image")
            width, height = struct.unpack("<HH", data[6:10])
            about += f", {width} x {height}"
        case "image/webp" if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
            raise ValueError("this is no WebP image")
        case "application/pdf":
            if data[:5] != b"%PDF-":
                raise ValueError("this is no PDF")
            about += f", {len(_PAGE.findall(data))} pages"
        case "image/jpeg" | "image/webp":
            pass
        case _:
            raise ValueError(f"files of type {media_type[:80]} are not supported")
    return Seen(media_type, len(data), about)


def cut(value: Any) -> Any:
    """A request as GET /calls shows it: of a file its beginning."""
    if isinstance(value, Mapping):
        return {
            name: _short(inner) if name in ("url", "file_data", "data") else cut(inner) for name, inner in value.items()
        }
    return [cut(inner) for inner in value] if isinstance(value, list) else value


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _KEPT else f"{value[:_KEPT]}… ({len(value)} characters)"
    return cut(value)
