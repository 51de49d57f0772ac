"""Takes the references out of Python, as `javascript.py` does out of JavaScript, with the same `Rewritten` and `Piece`.

- In code, `<draft.n> > 3` becomes `__v["draft.n"] > 3`; also inside the braces of an f-string.
- In a text, `'Hi <draft.name>!'` becomes `f'Hi {__t["draft.name"]}!'` (its own braces doubled), so that it remains one
text: texts may stand side by side, in several lines, raw.
- In comments and in bytes nothing is replaced.

Only f-strings of Python 3.12 and newer may hold any quotes inside their braces: the guest is 3.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from compiler.javascript import Piece, Rewritten, Where, literal, match_at, replaced
from compiler.references import Found, find

_WORD = re.compile(r"[^\W\d]\w*|\d\w*")
_COMMENT = re.compile(r"#[^\n]*")
_OPENING = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")
_TEXT_PREFIXES = frozenset({"", "r", "u", "f", "t", "fr", "rf", "tr", "rt"})
_PREFIXES = _TEXT_PREFIXES | {"b", "br", "rb"}


def rewrite(source: str, known: Collection[str]) -> Rewritten:
    """Replace the references whose key (`Found.key`) is in `known`; everything else stays as it is."""
    return replaced(source, scan(source, lambda found: found.key in known), "{%s}", _formatted)


def references(source: str, known: Callable[[Found], bool]) -> list[tuple[Where, Found]]:
    return [(piece.where, found) for piece in scan(source, known) for found in piece.found]


def scan(source: str, known: Callable[[Found], bool]) -> Iterator[Piece]:
    """Yield the pieces of `source` with references for which `known` is true, from left to right: "template" is the
    text of an f-string, "string" that of any other."""
    if "<" not in source and "${" not in source:
        return
    # Open f-strings: quote, is it raw, and how many brackets are open in its present braces; 0 while in its text.
    stack: list[tuple[str, bool, int]] = []
    at, end = 0, len(source)
    while at < end:
        if stack and stack[-1][2] == 0:
            quote, raw, _ = stack[-1]
            char = source[at]
            if source.startswith(quote, at):
                stack.pop()
                at += len(quote)
            elif char == "\\" and not raw:
                at += 2
            elif char in "<$" and (found := match_at(source, at, known)) is not None:
                yield Piece("template", found.start, found.end, (found,))
                at = found.end
            elif source.startswith(("{{", "}}"), at):
                at += 2
            else:
                if char == "{":
                    stack[-1] = (quote, raw, 1)
                at += 1
            continue
        char = source[at]
        if char in "<$" and (found := match_at(source, at, known)) is not None:
            yield Piece("code", found.start, found.end, (found,))
            at = found.end
        elif (opening := _OPENING.match(source, at)) and opening[1].lower() in _PREFIXES:
            prefix, quote = opening[1].lower(), opening[2]
            if "f" in prefix or "t" in prefix:
                stack.append((quote, "r" in prefix, 0))
                at = opening.end()
                continue
            stop = _end_of(source, opening.end(), quote)
            inside = () if "b" in prefix else tuple(_in_text(source, opening.end(), stop - len(quote), known))
            if inside:
                yield Piece("string", at, stop, inside)
            at = stop
        elif (match := _WORD.match(source, at)) or (match := _COMMENT.match(source, at)):
            at = match.end()
        else:
            if stack:
                quote, raw, depth = stack[-1]
                stack[-1] = (quote, raw, depth + (char in "([{") - (char in ")]}"))
            at += 1


def _end_of(source: str, at: int, quote: str) -> int:
    """Return the position after the closing quote; the end of the source, or of the line, if there is none."""
    while at < len(source):
        if source[at] == "\\":
            at += 2
        elif source.startswith(quote, at):
            return at + len(quote)
        elif source[at] == "\n" and len(quote) == 1:
            return at
        else:
            at += 1
    return len(source)


def _in_text(source: str, start: int, stop: int, known: Callable[[Found], bool]) -> Iterator[Found]:
    for found in find(source[start:stop]):
        shifted = Found(found.text, found.start + start, found.end + start, found.env)
        if known(shifted):
            yield shifted


def _formatted(source: str, piece: Piece) -> str:
    """A text with references as an f-string: same quotes, its own braces doubled, except those of `\\N{...}`."""
    opening = _OPENING.match(source, piece.start)
    assert opening is not None, "a piece of a text begins with its prefix and quote"
    prefix = opening[1].replace("u", "").replace("U", "")
    raw = "r" in prefix.lower()
    parts = [f"f{prefix}{opening[2]}"]
    at = opening.end()
    for found in piece.found:
        parts += (_doubled(source[at : found.start], raw), f"{{__t[{literal(found)}]}}")
        at = found.end
    stop = piece.end - len(opening[2])
    parts += (_doubled(source[at:stop], raw), source[stop : piece.end])
    return "".join(parts)


def _doubled(text: str, raw: bool) -> str:
    if raw:
        return text.replace("{", "{{").replace("}", "}}")
    pieces = re.split(r"(\\N\{[^{}]*\}|\\[^{}])", text)
    return "".join(part if n % 2 else part.replace("{", "{{").replace("}", "}}") for n, part in enumerate(pieces))
