"""Every way in which encoders spell a text: as it is, in other case, and percent-encoded, HTML-escaped, JSON-escaped or
quoted-printable, once or several times, character by character in any mixture, in one line or folded into several.

httpx encodes some characters of a URL and leaves others, host names lose their case, a log quotes JSON inside JSON. So
a secret is searched by what each of its characters may look like, not by a list of whole forms. Most encoders leave
ASCII letters and digits alone: `runs` are the parts of a text that its spellings contain, which makes "not there"
quick. For the others (`\\u0061`, `&#97;`, folded lines, UTF-16) `unescaped` makes a text in which the runs stand again.

Texts come from outside, and the expressions for spellings are ambiguous by nature, so they are matched by RE2: its
time is linear in the text whatever stands there, where `re` may try every way to read a run of backslashes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html.entities import html5
from typing import Final

import re2

# A backslash, before a quotation mark or for itself: four levels of JSON in JSON make fifteen of one.
_BACKSLASH: Final = r"(?:\\|%(?:25)*5[cC])"
_LEVELS: Final = "{0,15}"
_JSON_LETTERS: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_LINE_ENDS: Final = "\r\n"
_UNIT = re.compile(r"\\+|[^\\]", re.DOTALL)
_RUN = re.compile(r"[A-Za-z0-9]+")
# An end that may be a cut-off escape. The pattern is loose: it only delays a text, by 40 characters at most.
_CUT_OFF = re.compile(r"(?:%[%0-9A-Fa-f]{0,40}|&[#;0-9A-Za-z]{0,40}|\\[\\%ux{0-9A-Fa-f]{0,40}|=[0-9A-F=\r\n]{0,20})\Z")
# Between two characters: the end of a line, with the mark and the indentation of folded ones, or the zero of UTF-16.
_ZERO: Final = r"(?:\x00|\\{1,15}u0000)"
_LINE_END: Final = r"(?:\\{1,15}[rn]|[\r\n])"
BREAK: Final = rf"(?:=?{_LINE_END}+[ \t]*|{_ZERO})"
_BREAKS = re.compile(f"{BREAK}*")
_ZEROS = re.compile(r"\x00*")
# One byte of ASCII that need not be escaped, and is: by numbers of two hexadecimal digits, or of decimal ones. Digits
# of bytes in a row are no escapes: PostgreSQL writes \x and then all of them.
_ESCAPE = re.compile(
    r"(?:%(?:25)*|\\{1,15}(?:u00|x(?=..(?![0-9A-Fa-f]))|u\{0{0,8})|&(?:amp;)*#[xX]0*)(?P<hex>[2-7][0-9A-Fa-f])[;}]?"
    r"|&(?:amp;)*#0*(?P<decimal>[1-9][0-9]{1,2});"
    r"|\\{1,15}(?P<slash>/)"
    r"|=3D"
)
_HINTS = re.compile(r"[%&]|\\[ux/\\]|=3D")  # one of them is in all that `_ESCAPE` finds
_ANY_BREAK = re.compile(rf"=?{_LINE_END}{{1,1000}}[ \t]*|{_ZERO}")  # `re` would keep a stack of all line ends


def unescaped(text: str) -> str:
    """Return `text` without escapes of ASCII and breaks, for looking whether something may be in it; the same object if
    there are none."""
    if "\n" in text or "\\" in text or "\0" in text or "\r" in text:
        text = _ANY_BREAK.sub("", text)
    return _ESCAPE.sub(_character, text) if _HINTS.search(text) is not None else text


def escapes(text: str) -> str:
    return " ".join(f"{match.start()}:{match[0]}" for each in (_ESCAPE, _ANY_BREAK) for match in each.finditer(text))


def without_end(text: str) -> str:
    """Without what may be an escape that the end cuts off."""
    return re.sub(_CUT_OFF, "", text)


def _character(match: re.Match[str]) -> str:
    if (digits := match["hex"]) is not None:
        return chr(int(digits, 16))
    if (digits := match["decimal"]) is not None:
        return chr(int(digits))
    return match["slash"] or "="


def folded(text: str) -> str:
    """A regular expression, without groups, for the spellings of a text whose letters have one case, as of base64."""
    return _joined(list(text), [_unit(char, one_case=True) for char in text])


_OPTIONS: Final = re2.Options()
_OPTIONS.dot_nl = True
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 256 << 20  # a bound, of which the spellings of a long key take a few MiB
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_NO_CHARACTER: Final = "\ufdd0"  # stands for a surrogate, which UTF-8 does not have


class Linear:
    __slots__ = ("_found",)

    def __init__(self, pattern: str) -> None:
        self._found: re.Pattern[str] = re2.compile(_SURROGATES.sub(_NO_CHARACTER, pattern), _OPTIONS)

    def __call__(self, text: str) -> Iterator[tuple[int, int]]:
        return (match.span() for match in self._found.finditer(_encodable(text)))

    def is_all_of(self, text: str) -> bool:
        return self._found.fullmatch(_encodable(text)) is not None


def _encodable(text: str) -> str:
    return text if text.isascii() or text.isprintable() else _SURROGATES.sub(_NO_CHARACTER, text)


@lru_cache(maxsize=4096)
def _linear_spelling(text: str, in_lines: bool) -> Linear:
    spelling = Spelling(text)
    return Linear(spelling.folded if in_lines else spelling.pattern)


@lru_cache(maxsize=256)
def linear_folded(form: str) -> Linear:
    return Linear(folded(form))


class Spelling:
    __slots__ = ("_folded", "_pattern", "_units", "runs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs = sorted({run.lower() for run in _RUN.findall(text)}, key=lambda run: (-len(run), run))
        self._units = _UNIT.findall(text)
        self._pattern = self._folded = ""

    def may_be_in(self, lowered: str, lowered_unescaped: str = "") -> bool:
        """Returns False if no spelling is in the texts, which are in lower case."""
        return all(run in lowered or run in lowered_unescaped for run in self.runs)

    @property
    def pattern(self) -> str:
        """A regular expression, without groups, for all spellings in one line."""
        if not self._pattern:
            self._pattern = "".join(_unit(unit) for unit in self._units)
        return self._pattern

    @property
    def folded(self) -> str:
        if not self._folded:
            self._folded = _joined(self._units, [_unit(unit) for unit in self._units])
        return self._folded

    def finder(self, in_lines: bool) -> Linear:
        return _linear_spelling(self.text, in_lines)

    def partial_length(self, text: str, at: int) -> int:
        """Return how many characters of this text the end of `text` from `at` spells; 0 if it is not a beginning."""
        units = 0
        for unit in self._units:
            broken = (_ZEROS if unit[0] in "\r\n\\" else _BREAKS).match(text, at) if units else None
            if broken is not None and broken.end() > at:
                at = broken.end() - (unit in " \t" and text[broken.end() - 1] == unit)
            if at == len(text):
                return units
            if text[at] in "%&\\=" and _CUT_OFF.match(text, at) is not None:
                return units + 1
            match = _compiled(unit).match(text, at)
            if match is None and unit[0] == "\\":
                return self._partial_backslashes(text, at, units, len(unit))
            if match is None:
                return units + 1 if any(form.startswith(text[at:]) for form in _misread(unit)) else 0
            at = match.end()
            units += len(unit)
        return 0

    @staticmethod
    def _partial_backslashes(text: str, at: int, units: int, count: int) -> int:
        for before in range(count):
            if at == len(text) or _CUT_OFF.match(text, at) is not None:
                return units + before
            if (match := _compiled("\\").match(text, at)) is None:
                return 0
            at = match.end()
        return units + count if at == len(text) else 0

    @property
    def firsts(self) -> frozenset[str]:
        """Return the characters that its spellings may begin with, besides those of escapes."""
        first = self.text[0]
        return frozenset((first, first.lower(), first.upper(), *(form[0] for form in _misread(first))))

    def shape(self, spelled: str) -> str:
        return "".join(map(_class, spelled, "\0" + spelled))


def _class(char: str, before: str) -> str:
    if char in "%&;#\\+=?{}\ufffd\r\n\t\0" or (before == "\\" and char in "nrtxu"):
        return char
    if char.isdigit():
        return "0"
    return "A" if char.isupper() else "a" if char.islower() else "."


def _joined(units: list[str], forms: list[str]) -> str:
    """With breaks, but for those that the character beside them may be itself: one text is matched in one way only."""
    parts = forms[:1]
    for before, unit, form in zip(units, units[1:], forms[1:], strict=False):
        if "\\" in (before[0], unit[0]):
            parts.append(f"\\x00?{form}")
        else:
            line_end = before in _LINE_ENDS or unit in _LINE_ENDS
            parts.append(f"{_ZERO if line_end else BREAK}?{form}")
    return "".join(parts)


@lru_cache(maxsize=1024)
def _compiled(unit: str) -> re.Pattern[str]:
    return re.compile(_unit(unit), re.DOTALL)


@lru_cache(maxsize=1024)
def _unit(unit: str, one_case: bool = False) -> str:
    """Return the spellings of one character or several backslashes, longer ones first: the last one takes all of it."""
    if unit[0] == "\\":
        one = rf"(?:{_BACKSLASH}{{1,15}}(?:u005[cC]|x5[cC]|u\{{0*5[cC]\}})|{_html(unit[0])}|=5[cC]|\\\x00)"
        return rf"(?:{one}{{{len(unit)}}}|\\\x00\\|{_BACKSLASH}{{{len(unit)},}}(?:u005[cC])?)"
    cases = dict.fromkeys(form for form in (unit, unit.lower(), unit.upper()) if len(form) == 1)
    cases = {unit: None} if one_case else cases
    forms = [form for case in cases for form in (*_escaped(case), _html(case), _percent(case), *_lost(case))]
    forms += [_BACKSLASH + _LEVELS + re.escape(unit)] if unit in "\"/'" else map(re.escape, cases)
    if unit == " ":
        forms.append(r"\+")
    return f"(?:{'|'.join(forms)})"


@lru_cache(maxsize=1024)
def _misread(char: str) -> tuple[str, ...]:
    if char.isascii():
        return ()
    data = char.encode("utf-8", "surrogatepass")
    forms = [data.decode("latin-1"), data.decode("cp1252", "replace"), unicodedata.normalize("NFD", char)]
    return tuple(form for form in dict.fromkeys(forms) if form != char)


def _lost(char: str) -> list[str]:
    if char.isascii():
        return []
    data = char.encode("utf-8", "surrogatepass")
    found = [re.escape(form) for form in _misread(char)]
    found.append("".join(_escaped(part)[0] for part in data.decode("latin-1")))
    if char <= "\xff":
        found += [rf"{_BACKSLASH}+x{_hex(f'{ord(char):02x}')}"]
        found += [rf"%(?:25)*{_hex(f'{ord(char):02x}')}", f"={_hex(f'{ord(char):02x}')}"]
    return [*found, f"[?\ufffd]{{1,{len(data)}}}", rf"(?:{_BACKSLASH}+u[fF]{{3}}[dD]){{1,{len(data)}}}"]


def _escaped(char: str) -> list[str]:
    """In JSON: \\u0026, \\n; beyond 16 bits two escapes. In programs \\u{26} and, byte by byte, \\x26; in mail =26."""
    words = char.encode("utf-16-be", "surrogatepass").hex()
    forms = ["".join(f"{_BACKSLASH}+u{_hex(words[at : at + 4])}" for at in range(0, len(words), 4))]
    data = char.encode("utf-8", "surrogatepass")
    forms.append(rf"{_BACKSLASH}+u\{{0*{_hex(f'{ord(char):x}')}\}}")
    forms.append("".join(f"{_BACKSLASH}+x{_hex(f'{byte:02x}')}" for byte in data))
    forms.append(rf"{_BACKSLASH}+U0*{_hex(f'{ord(char):x}')}")
    forms.append(r"(?:=\r?\n)?".join(f"={_hex(f'{byte:02x}')}" for byte in data))
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
