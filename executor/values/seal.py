"""A message on disk must not hold secrets, and must hold them when it goes out. Sealed, it names them instead.

Sealed JSON is a list of texts: even places are JSON as it is, odd places are names of environment values that stood
there. No text is read as a name, whatever people write, so no one can get a secret by writing its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from executor.errors import BlockError
from executor.values.redact import LENGTH_MIN, Redactor


def seal(content: bytes, env: Mapping[str, str], secrets: Iterable[str], redactor: Redactor) -> bytes:
    """`content` is JSON. What a redactor would take out of the rest (a secret in base64, say) cannot be put back, and
    is taken out."""
    by_text = {_written(env[name]): name for name in secrets if len(env.get(name, "")) >= LENGTH_MIN}
    parts = [content.decode()]
    if by_text:
        longest_first = sorted(by_text, key=lambda text: (-len(text), text))
        pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        parts = pattern.split(parts[0])
    return orjson.dumps(
        [by_text[part] if at % 2 else redactor.redact(part) for at, part in enumerate(parts)],
    )


def unseal(sealed: bytes, env: Mapping[str, str]) -> Any:
    """The JSON value, with the secrets as they are now. Raises BlockError when one of them is gone."""
    parts: list[str] = orjson.loads(sealed)
    for name in parts[1::2]:
        if name not in env:
            raise BlockError(f"the secret {name} is no longer set", code="secret_missing", retryable=False)
    return orjson.loads("".join(_written(env[part]) if at % 2 else part for at, part in enumerate(parts)))


def unsealed_names(sealed: bytes) -> Any:
    """The JSON value for people: `${NAME}` where a secret belongs."""
    return orjson.loads("".join(f"${{{part}}}" if at % 2 else part for at, part in enumerate(orjson.loads(sealed))))


def _written(secret: str) -> str:
    """As it stands inside a JSON text."""
    return orjson.dumps(secret).decode()[1:-1]
