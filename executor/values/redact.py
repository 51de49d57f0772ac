"""Keeps secrets out of what leaves the process: errors, logs, the journal, streams and exports.

A secret is looked for as it is, JSON-escaped, URL-encoded and in base64, there also as a part of something longer
(`user:secret`). Secrets under 6 characters are left alone: they would hit ordinary words.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

import orjson

LENGTH_MIN: Final = 6
MARK: Final = "[redacted]"
_LIKE_NAME = re.compile(r"\[[^\[\]]*/\d+\]")


class Redactor:
    """Replaces the given secrets, longest first, by `[redacted]`. Immutable and safe to share."""

    def __init__(self, secrets: Iterable[str] | Mapping[str, str]) -> None:
        """`secrets`: the texts, or the texts by the names they have, which `named` needs."""
        by_name = sorted(secrets.items()) if isinstance(secrets, Mapping) else [("", secret) for secret in secrets]
        forms: dict[str, str] = {}
        for name, secret in by_name:
            for at, form in enumerate(_forms(secret) if len(secret) >= LENGTH_MIN else ()):
                forms.setdefault(form, f"{name}/{at}")
        self._names = forms
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        self._forms = longest_first
        self._firsts = frozenset(form[0] for form in forms)
        self._length_max = len(longest_first[0]) if forms else 0

    def redact(self, text: str) -> str:
        return self._pattern.sub(MARK, text) if self._pattern is not None else text

    def redact_cut(self, text: str) -> str:
        """The same for a text that may have been cut off: an end that begins a secret goes, too."""
        text = self.redact(text)
        tail = self._tail(text)
        return text[:-tail] + MARK if tail >= LENGTH_MIN else text

    def stream(self, send: Callable[[str], None]) -> RedactedStream:
        """For a text that comes in pieces; call `end` behind the last one."""
        return RedactedStream(self, send)

    def redact_json(self, data: bytes) -> bytes:
        """`data` is JSON and stays JSON: texts and keys are redacted, and a number that is a secret becomes a text."""
        if self._pattern is None:
            return data
        text = data.decode()
        if "\\" not in text and self._pattern.search(text) is None:
            return data
        return orjson.dumps(self.redact_value(orjson.loads(data)))

    def redact_value(self, value: Any) -> Any:
        """The same for a decoded JSON value; a new one is returned where something was found."""
        return value if self._pattern is None else _replaced(value, self.redact)

    def named(self, value: Any) -> tuple[Any, list[str]]:
        """A decoded JSON value with the name of each secret in its place, and these names. Both together are equal for
        equal values only, and tell no secret."""
        found: list[str] = []
        if self._pattern is None:
            return value, found
        return _replaced(value, lambda text: self._with_names(text, found)), sorted(found)

    def label(self, text: str) -> str:
        """A text with the name of each secret in its place: for what is recorded to be compared later, where two
        different secrets must not become one."""
        return self._with_names(text, [])

    def _with_names(self, text: str, found: list[str]) -> str:
        if self._pattern is None:
            return text
        parts, at, plain = list[str](), 0, _LIKE_NAME.search(text) is None
        for match in self._pattern.finditer(text):
            found.append(self._names[match[0]])
            parts += text[at : match.start()].replace("[", "[["), f"[{found[-1]}]"
            at, plain = match.end(), False
        # A bracket is doubled where a name is, or what looks like one, so that this is taken for none.
        return text if plain else "".join([*parts, text[at:].replace("[", "[[")])

    def _tail(self, text: str) -> int:
        """Length of the longest end of `text` with which a secret begins."""
        for at in range(max(0, len(text) - self._length_max + 1), len(text)):
            if text[at] in self._firsts and any(form.startswith(text[at:]) for form in self._forms):
                return len(text) - at
        return 0


class RedactedStream:
    """Holds back what may be the beginning of a secret until the next piece settles it."""

    __slots__ = ("_held", "_redactor", "_send")

    def __init__(self, redactor: Redactor, send: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._send = send
        self._held = ""

    def __call__(self, text: str) -> None:
        text = self._redactor.redact(self._held + text)
        cut = len(text) - self._redactor._tail(text)
        self._held = text[cut:]
        if cut:
            self._send(text[:cut])

    def end(self) -> None:
        if self._held:
            self._send(self._redactor.redact_cut(self._held))
        self._held = ""


def _replaced(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {redact(key): _replaced(item, redact) for key, item in value.items()}
        case list() | tuple():
            return [_replaced(item, redact) for item in value]
        case int() | float() if not isinstance(value, bool):
            text = orjson.dumps(value).decode()
            redacted = redact(text)
            return value if redacted == text else redacted
        case _:
            return value


def _forms(secret: str) -> Iterable[str]:
    """How the secret may be written. In base64 a secret also ends without padding, and in either alphabet."""
    raw = secret.encode(errors="surrogatepass")
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(raw, safe="")
    yield quote(raw)
    yield quote_plus(raw)
    yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), quote(raw, safe=""))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(raw).decode()
        yield encoded
        yield encoded.rstrip("=")
        for before in range(3):  # bytes in front of it in its group of three: the letters that it settles alone
            whole = (before + len(raw)) * 8 // 6
            yield encode(b"\0" * before + raw).decode()[-(-before * 8 // 6) : whole]
