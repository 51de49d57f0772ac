"""Embeddings, in the wire format of OpenAI: texts that have words in common have vectors that are near. Beside that
they know nothing of meaning."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from array import array
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from .script import CHARS_PER_TOKEN

PATHS: Final = ("/v1/embeddings", "/embeddings")
DIMENSION: Final = 256  # bits of SHA-256
_ROOT: Final = 6  # characters by which `search`, `searches` and `searched` are one word
_SHORT: Final = 3  # characters of words that say little, such as "the"


def vector(text: str) -> list[float]:
    """Return a vector of length 1."""
    total = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.casefold()):
        weight = 0.1 if len(word) <= _SHORT else 1.0
        for at, sign in enumerate(_signs(word[:_ROOT])):
            total[at] += weight * sign
    length = math.sqrt(sum(number * number for number in total)) or 1.0
    return [number / length for number in total]


def tokens(texts: list[str]) -> int:
    return sum(1 + len(text) // CHARS_PER_TOKEN for text in texts)


def whole(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to a request. Raises KeyError and others when it is none."""
    given = body["input"]
    texts = [given] if isinstance(given, str) else [str(text) for text in given]
    packed = body.get("encoding_format") == "base64"
    found = [{"object": "embedding", "index": at, "embedding": _written(text, packed)} for at, text in enumerate(texts)]
    used = tokens(texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "model": body["model"], "data": found, "usage": usage}


def _written(text: str, packed: bool) -> Any:
    numbers = vector(text)
    return base64.b64encode(array("f", numbers).tobytes()).decode() if packed else numbers


@cache
def _signs(word: str) -> tuple[int, ...]:
    bits = int.from_bytes(hashlib.sha256(word.encode()).digest(), "big")
    return tuple(1 if bits >> at & 1 else -1 for at in range(DIMENSION))
