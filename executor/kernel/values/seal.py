"""Content with marks in place of secrets, which is opened with their present values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from executor.errors import BlockError
from executor.kernel.values.redact import LENGTH_MIN, Redactor


def seal(content: bytes, env: Mapping[str, str], secrets: Iterable[str], redactor: Redactor) -> bytes:
    """Seal `content`, which is JSON. A secret in another spelling cannot be put back, and is taken out."""
    by_text = {_written(env[name]): name for name in secrets if len(env.get(name, "")) >= LENGTH_MIN}
    parts = [content.decode()]
    if by_text:
        longest_first = sorted(by_text, key=lambda text: (-len(text), text))
        pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        parts = pattern.split(parts[0])
    return orjson.dumps(
        [by_text[part] if at % 2 else redactor.redact(part) for at, part in enumerate(parts)],
    )


def sealed_names(sealed: bytes) -> list[str]:
    parts: list[str] = orjson.loads(sealed)
    return sorted(set(parts[1::2]))


def unseal(sealed: bytes, env: Mapping[str, str]) -> Any:
    """Return the JSON value, with the secrets as they are now. Raises BlockError if one of them is gone."""
    parts: list[str] = orjson.loads(sealed)
    for name in parts[1::2]:
        if name not in env:
            raise BlockError(f"the secret {name} is no longer set", code="secret_missing", retryable=False)
    return orjson.loads("".join(_written(env[part]) if at % 2 else part for at, part in enumerate(parts)))


def unsealed_names(sealed: bytes) -> Any:
    """Return the JSON value for people: `${NAME}` where a secret belongs."""
    return orjson.loads("".join(f"${{{part}}}" if at % 2 else part for at, part in enumerate(orjson.loads(sealed))))


def _written(secret: str) -> str:
    """Return the secret as it is written inside a JSON string."""
    return orjson.dumps(secret).decode()[1:-1]
