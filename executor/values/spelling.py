"""Every way in which encoders spell a text: as it is, in other case, and percent-encoded, HTML-escaped or JSON-escaped,
once or several times, character by character in any mixture.

httpx encodes some characters of a URL and leaves others, host names lose their case, a log quotes JSON inside JSON. So
a secret is searched by what each of its characters may look like, not by a list of whole forms. Encoders leave ASCII
letters and digits alone: `runs` are the parts of a text that every spelling contains, which makes "not there" quick.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5
from typing import Final

# What may stand in front of a quotation mark, or for a backslash: four levels of JSON in JSON make fifteen of one.
_BACKSLASH: Final = r"(?:\\|%(?:25)*5[cC])"
_LEVELS: Final = "{0,15}"
_JSON_LETTERS: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_UNIT = re.compile(r"\\+|[^\\]", re.DOTALL)
_RUN = re.compile(r"[A-Za-z0-9]+")
# What may be an escape that the end of the text cuts off. Loose: it only delays a text, by 40 characters at most.
_CUT_OFF = re.compile(r"(?:%[%0-9A-Fa-f]{0,40}|&[#;0-9A-Za-z]{0,40}|\\[\\%u0-9A-Fa-f]{0,40})\Z")


class Spelling:
    """The spellings of one text."""

    __slots__ = ("_pattern", "_units", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs = sorted({run.lower() for run in _RUN.findall(text)}, key=lambda run: (-len(run), run))
        self._units = _UNIT.findall(text)
        self._pattern = ""

    def may_be_in(self, lowered: str) -> bool:
        """False: no spelling is in the text of which `lowered` is the lower case."""
        return all(run in lowered for run in self.runs)

    @property
    def pattern(self) -> str:
        """A regular expression, without groups, for all spellings."""
        if not self._pattern:
            self._pattern = "".join(_unit(unit) for unit in self._units)
        return self._pattern

    def partial_length(self, text: str, at: int) -> int:
        """How many characters of this text the end of `text` from `at` spells; 0 when it is not a beginning."""
        units = 0
        for unit in self._units:
            if at == len(text):
                return units
            if text[at] in "%&\\" and _CUT_OFF.match(text, at) is not None:
                return units + 1
            match = _compiled(unit).match(text, at)
            if match is None:
                return 0
            at = match.end()
            units += len(unit)
        return 0

    def shape(self, spelled: str) -> str:
        """What tells one spelling of this text from another, without its letters."""
        return "".join(map(_class, spelled))


def _class(char: str) -> str:
    if char in "%&;#\\+":
        return char
    if char.isdigit():
        return "0"
    return "A" if char.isupper() else "a" if char.islower() else "."


@lru_cache(maxsize=1024)
def _compiled(unit: str) -> re.Pattern[str]:
    return re.compile(_unit(unit), re.DOTALL)


@lru_cache(maxsize=1024)
def _unit(unit: str) -> str:
    """`unit` is one character, or several backslashes. Longer spellings stand first: the last character takes all that
    belongs to it."""
    if unit[0] == "\\":
        return f"(?:{_BACKSLASH}{{{len(unit)},}}(?:u005[cC])?|{_html(unit[0])})"
    cases = dict.fromkeys(form for form in (unit, unit.lower(), unit.upper()) if len(form) == 1)
    forms = [form for case in cases for form in (*_escaped(case), _html(case), _percent(case))]
    forms += [_BACKSLASH + _LEVELS + re.escape(unit)] if unit in '"/' else map(re.escape, cases)
    if unit == " ":
        forms.append(r"\+")
    return f"(?:{'|'.join(forms)})"


def _escaped(char: str) -> list[str]:
    """In JSON: \\u0026, \\n; beyond 16 bits two escapes."""
    words = char.encode("utf-16-be", "surrogatepass").hex()
    forms = ["".join(f"{_BACKSLASH}+u{_hex(words[at : at + 4])}" for at in range(0, len(words), 4))]
    if char in _JSON_LETTERS:
        forms.append(f"{_BACKSLASH}+{_JSON_LETTERS[char]}")
    return forms


def _percent(char: str) -> str:
    """Each byte of UTF-8, the percent sign encoded again as often as there are levels."""
    escapes = "".join(rf"%(?:25)*{_hex(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))
    return f"{_BACKSLASH}{_LEVELS}{escapes}" if char in '"/' else escapes


def _html(char: str) -> str:
    """By number or name, the ampersand escaped again as often as there are levels."""
    names = "".join(f"|{name}" for name in _names().get(char, ()))
    return rf"&(?:amp;)*(?:#0*{ord(char)};|#[xX]0*{_hex(f'{ord(char):x}')};{names})"


@lru_cache(maxsize=1)
def _names() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, text in html5.items():
        if len(text) == 1 and name.endswith(";"):
            names.setdefault(text, []).append(name)
    return names


def _hex(digits: str) -> str:
    return "".join(f"[{digit.lower()}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
