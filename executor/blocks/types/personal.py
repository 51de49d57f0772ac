"""Personal data in texts, by its form: a net with holes, not a proof that there is none. Each search takes time by the
length of the text alone."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct

KINDS: Final = ("email", "phone", "credit_card", "iban", "ip_address", "us_ssn")


class Found(Struct, frozen=True):
    """The number of matches of each kind, and the text with marks in their places."""

    counts: dict[str, int]
    masked: str


def find_personal(text: str, kinds: Collection[str] = KINDS) -> Found:
    """Find personal data of these kinds in `text`. The masked text has `[EMAIL]` and the like in their places."""
    counts: dict[str, int] = {}
    for kind, (pattern, is_one) in _PATTERNS.items():
        if kind in kinds:
            text, found = _masked(text, kind, pattern, is_one)
            if found:
                counts[kind] = found
    return Found(counts, text)


def _masked(text: str, kind: str, pattern: re.Pattern[str], is_one: Callable[[str], bool]) -> tuple[str, int]:
    found = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal found
        if not is_one(match[0]):
            return match[0]
        found += 1
        return f"[{kind.upper()}]"

    return pattern.sub(mark, text), found


def _is_card(text: str) -> bool:
    """Return True if the text is a card number, by its Luhn check digit."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    packed = text.replace(" ", "").upper()
    turned = packed[4:] + packed[:4]
    return 15 <= len(packed) <= 34 and int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_phone(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return 8 <= digits <= 15


def _any(text: str) -> bool:
    return True


# Kinds that others could be mistaken for come first. All repeats are bounded.
_PATTERNS: Final[dict[str, tuple[re.Pattern[str], Callable[[str], bool]]]] = {
    "email": (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"), _any),
    "iban": (re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b"), _is_iban),
    "credit_card": (re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)"), _is_card),
    "us_ssn": (re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])"), _any),
    "ip_address": (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"), _is_address),
    "phone": (
        re.compile(r"(?<![\w+])(?<!\d[ -])(?:\+\d{1,3}|\(?0\d{1,5}\)?|\(\d{2,5}\))(?:[ ()/.-]{0,2}\d){5,13}(?!\w)"),
        _is_phone,
    ),
}
