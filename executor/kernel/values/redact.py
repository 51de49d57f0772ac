"""Keeps secrets out of what leaves the process: errors, logs, the journal, streams and exports.

A secret is looked for in every spelling of encoders (`values/spelling.py`), in hexadecimal digits and in base64,
there also as a part of something longer (`user:secret`). What a program does to it, as reversing, compressing or
encrypting it, is not found. Secrets under 6 characters are left alone: they would hit ordinary words. `LiveRedactor`
learns the values of secrets that become known while a process runs.

A message on disk must not hold secrets, and must hold them when it goes out. Sealed, it names them instead: sealed
JSON is a list of texts, in which even places are JSON as it is, and odd places are names of environment values that
stood there. No text is read as a name, whatever people write, so no one can get a secret by writing its name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

import orjson

from executor.kernel.values.payload import trimmed
from executor.kernel.values.spelling import BREAK, Spelling, escapes, folded, linear_folded, unescaped, without_end

LENGTH_MIN: Final = 6
MARK: Final = "[redacted]"
_LIKE_NAME = re.compile(r"\[[^\[\]]*/(?:\d+|\d*~[0-9a-f]+)\]")
Finder = Callable[[str], Iterable[tuple[int, int]]]  # where in a text something stands, from left to right
_SPELLED_MAX: Final = 12  # characters of one spelled character, where a text may end inside of it


class _Secrets:
    """The given secrets, longest first, and their spellings."""

    def __init__(self, secrets: Iterable[str] | Mapping[str, str]) -> None:
        by_name = sorted(secrets.items()) if isinstance(secrets, Mapping) else [("", secret) for secret in secrets]
        names: dict[str, str] = {}
        spellings: dict[str, tuple[Spelling, str]] = {}
        encoded: dict[str, str] = {}
        for name, secret in by_name:
            if len(secret) < LENGTH_MIN:
                continue
            for at, form in enumerate(_forms(secret)):
                names.setdefault(form, f"{name}/{at}")
            spellings.setdefault(secret, (Spelling(secret), name))
            encoded |= dict.fromkeys((*_base64(secret), *_further(secret)), name)
        self.any = bool(encoded)
        self._names = names
        self._spellings = sorted(spellings.values(), key=lambda pair: (-len(pair[0].text), pair[0].text))
        self._encoded = sorted(encoded, key=lambda form: (-len(form), form))
        self._any_encoded = re.compile("|".join(map(re.escape, self._encoded))) if encoded else None
        self._long = re.compile(f"[A-Za-z0-9+/_=-]{{{min(map(len, encoded))}}}") if encoded else None
        self._firsts = frozenset("%&\\+=?\ufffd").union(
            *(spelling.firsts for spelling, _ in self._spellings),
            (form[0] for form in self._encoded),
        )
        self._length_max = _SPELLED_MAX * max((len(s.text) for s, _ in self._spellings), default=0)

    def finders(self, text: str) -> list[Finder]:
        if self._any_encoded is None:
            return []
        lowered, plain = text.lower(), unescaped(text)
        in_lines = plain is not text
        low = plain.lower() if in_lines else ""
        likely = (spelling for spelling, _ in self._spellings if spelling.may_be_in(lowered, low))
        found: list[Finder] = [spelling.finder(in_lines) for spelling in likely]
        if in_lines and self._may_be_encoded(plain):
            found += (linear_folded(form) for form in self._encoded if form in plain and form not in text)
        if self._may_be_encoded(text):
            found.append(self._find_encoded)
        return found

    def _find_encoded(self, text: str) -> Iterator[tuple[int, int]]:
        assert self._any_encoded is not None
        return (match.span() for match in self._any_encoded.finditer(text))

    def _may_be_encoded(self, text: str) -> bool:
        assert self._long is not None and self._any_encoded is not None
        return self._long.search(text) is not None and self._any_encoded.search(text) is not None

    def name_of(self, spelled: str) -> str:
        if spelled in self._names:
            return self._names[spelled]
        for spelling, name in self._spellings:
            if spelling.finder(in_lines=True).is_all_of(spelled):
                return f"{name}/~{_digest(spelling.shape(spelled))}"
        form = next(form for form in self._encoded if linear_folded(form).is_all_of(spelled))
        return f"{self._names[form]}~{_digest(escapes(spelled))}"

    def tail(self, text: str) -> tuple[int, int]:
        """Length of the longest end of `text` with which a secret begins, and how much of the secret that is."""
        return max(self._straight_tail(text), self._folded_tail(text[-self._length_max :]))

    def _straight_tail(self, text: str) -> tuple[int, int]:
        for at in range(max(0, len(text) - self._length_max), len(text)):
            if text[at] not in self._firsts:
                continue
            left = len(text) - at
            letters = max((spelling.partial_length(text, at) for spelling, _ in self._spellings), default=0)
            if not letters and any(form.startswith(text[at:]) for form in self._encoded):
                letters = left
            if letters:
                return left, letters
        return 0, 0

    def _folded_tail(self, text: str) -> tuple[int, int]:
        plain = unescaped(without_end(text))
        if len(plain) == len(text):
            return 0, 0
        letters, begun = max(((_begun(form, plain), form) for form in self._encoded), default=(0, ""))
        if not letters:
            return 0, 0
        cut = text[: len(without_end(text))]
        found = re.search(f"{folded(begun[:letters])}(?:{BREAK})?\\Z", cut)
        return (len(text) - found.start(), letters) if found is not None else (0, 0)


class Redactor:
    """Replaces the given secrets by `[redacted]`. Safe to share."""

    def __init__(self, secrets: Iterable[str] | Mapping[str, str]) -> None:
        """`secrets`: the texts, or the texts by the names they have, which `named` needs."""
        self._secrets = _Secrets(secrets)

    def redact(self, text: str) -> str:
        """Return `text` with every secret in it, in any usual encoding, replaced by `[redacted]`."""
        finders = self._secrets.finders(text)
        return _marked(text, finders) if finders else text

    def redact_cut(self, text: str) -> str:
        """The same for a text that may have been cut off: an end that begins a secret goes, too."""
        text = self.redact(text)
        tail, letters = self._secrets.tail(text)
        return text[:-tail] + MARK if letters >= LENGTH_MIN else text

    def stream(self, send: Callable[[str], None]) -> RedactedStream:
        return RedactedStream(self, send)

    def redact_json(self, data: bytes) -> bytes:
        """`data` is JSON and stays JSON: texts and keys are redacted, and a number that is a secret becomes a text."""
        if b"\\u" in data:
            data = trimmed(orjson.dumps(orjson.loads(data)))  # letters need no escape, and are found without
        finders = self._secrets.finders(data.decode())
        if not finders:
            return data
        return trimmed(orjson.dumps(_replaced(orjson.loads(data), lambda text: _marked(text, finders))))

    def redact_value(self, value: Any) -> Any:
        return value if not self._secrets.any else _replaced(value, self.redact)

    def named(self, value: Any) -> tuple[Any, list[str]]:
        """Return a JSON value with names for secrets, and these names. They are equal for equal values only."""
        found: list[str] = []
        if not self._secrets.any:
            return value, found
        return _replaced(value, lambda text: self._with_names(text, found)), sorted(found)

    def label(self, text: str) -> str:
        """Return a text with names for secrets, to be compared later: two secrets must not become one."""
        return self._with_names(text, [])

    def _with_names(self, text: str, found: list[str]) -> str:
        parts, at, plain = list[str](), 0, _LIKE_NAME.search(text) is None
        for start, end in _spans(text, self._secrets.finders(text)):
            found.append(self._secrets.name_of(text[start:end]))
            parts += text[at:start].replace("[", "[["), f"[{found[-1]}]"
            at, plain = end, False
        # A bracket is doubled where a name is, or what looks like one, so that this is not read as one.
        return text if plain else "".join([*parts, text[at:].replace("[", "[[")])


class RedactedStream:
    """Holds back what may be the beginning of a secret until the next piece settles it."""

    __slots__ = ("_held", "_redactor", "_send")

    def __init__(self, redactor: Redactor, send: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._send = send
        self._held = ""

    def __call__(self, text: str) -> None:
        text = self._redactor.redact(self._held + text)
        cut = len(text) - self._redactor._secrets.tail(text)[0]
        self._held = text[cut:]
        if cut:
            self._send(text[:cut])

    def end(self) -> None:
        """The rest of the text, which was held back because it may have begun a secret."""
        if self._held:
            self._send(self._redactor.redact_cut(self._held))
        self._held = ""


def _spans(text: str, finders: Iterable[Finder]) -> list[tuple[int, int]]:
    """Return the spans of secrets, from left to right. Of those that overlap the first counts, then the earlier
    finder."""
    found = [(start, order, end) for order, find in enumerate(finders) for start, end in find(text)]
    kept: list[tuple[int, int]] = []
    for start, _, end in sorted(found):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _marked(text: str, finders: Iterable[Finder]) -> str:
    parts, at = list[str](), 0
    for start, end in _spans(text, finders):
        parts += text[at:start], MARK
        at = end
    return "".join([*parts, text[at:]]) if parts else text


def _digest(shape: str) -> str:
    return hashlib.blake2s(shape.encode(errors="surrogatepass"), digest_size=6).hexdigest()


def _begun(form: str, text: str) -> int:
    return next((size for size in range(min(len(form), len(text)), 0, -1) if text.endswith(form[:size])), 0)


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
    """The usual spellings, in an order that stays: their numbers are part of recorded names."""
    raw = secret.encode(errors="surrogatepass")
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(raw, safe="")
    yield quote(raw)
    yield quote_plus(raw)
    yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), quote(raw, safe=""))
    yield from _base64(secret)
    yield from _further(secret)


def _base64(secret: str) -> Iterable[str]:
    """In both alphabets, with and without padding, and the part of it that stays the same inside something longer."""
    raw = secret.encode(errors="surrogatepass")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(raw).decode()
        yield encoded
        yield encoded.rstrip("=")
        for before in range(3):  # bytes in front of it in its group of three: the letters that it settles alone
            whole = (before + len(raw)) * 8 // 6
            yield encode(b"\0" * before + raw).decode()[-(-before * 8 // 6) : whole]


def _further(secret: str) -> Iterable[str]:
    """In hexadecimal digits, and in base64 what Windows encodes so: UTF-16."""
    digits = secret.encode(errors="surrogatepass").hex()
    yield digits
    yield digits.upper()
    wide = secret.encode("utf-16-le", "surrogatepass")
    for before in range(3):
        yield base64.b64encode(b"\0" * before + wide).decode()[-(-before * 8 // 6) : (before + len(wide)) * 8 // 6]


class LiveRedactor(Redactor):
    """A redactor that learns secrets, and keeps them: an old value may still occur in an answer. What it knows is
    replaced as a whole, so any thread may use it meanwhile."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__(secrets)
        self._texts = dict(secrets)

    def learn(self, name: str, version: int, secret: str) -> None:
        self.learn_all([(name, version, secret)])

    def learn_all(self, secrets: Iterable[tuple[str, int, str]]) -> None:
        labelled = {name if version == 1 else f"{name}.{version}": secret for name, version, secret in secrets}
        if not labelled.items() <= self._texts.items():
            self._texts |= labelled
            self._secrets = _Secrets(self._texts)
