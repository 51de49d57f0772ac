"""Takes the references out of JavaScript. Values are bound, not pasted: `__v["ref"]` the value, `__t["ref"]` its text.

A light scanner, not a parser: it distinguishes code, strings, templates, comments and regular expressions, which is
enough to read a reference there correctly.

- In code, `<draft.n> > 3` becomes `__v["draft.n"] > 3`.
- In a quoted text, `'Hi <draft.name>!'` becomes `('Hi ' + __t["draft.name"] + '!')`: no value can close the author's
quotes.
- In a template, it becomes `${__t["draft.name"]}`. `${...}` there is JavaScript's own, unless it is exactly a known
`${ENV}`.
- In comments and regular expressions nothing is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, assert_never

from msgspec import Struct

from compiler.references import ENV, REFERENCE, Found, find

Where = Literal["code", "string", "template"]

# After these words a slash starts a regular expression.
_BEFORE_REGEX = frozenset(
    ["await", "case", "default", "delete", "do", "else", "in", "instanceof", "new", "of", "return", "throw", "typeof",
     "void"]
)  # fmt: skip
_WORD = re.compile(r"[\w$]+")
_SPACE = re.compile(r"\s+")
_STRING = {q: re.compile(rf"{q}((?:[^{q}\\\n]|\\[\s\S])*){q}") for q in "'\""}
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")
_TEMPLATE_TEXT = re.compile(r"(?:[^`\\$<]|\\[\s\S]|\$(?!\{))+")


class Rewritten(Struct, frozen=True):
    """`source` reads `values` through `__v[...]` and `texts` through `__t[...]`; both hold each text once, in order."""

    source: str
    values: tuple[str, ...]
    texts: tuple[str, ...]


class Piece(Struct, frozen=True):
    """A stretch of source that holds references: one in code or template text, or a quoted text with all of its own."""

    where: Where
    start: int
    end: int
    found: tuple[Found, ...]


def rewrite(source: str, known: Collection[str]) -> Rewritten:
    """Replace the references whose key (`Found.key`) is in `known`; everything else stays as it is."""
    return replaced(source, scan(source, lambda found: found.key in known), "${%s}", _joined)


def replaced(source: str, pieces: Iterable[Piece], braces: str, quoted: Callable[[str, Piece], str]) -> Rewritten:
    """`braces`: how a value stands in the text of a template. `quoted`: what becomes of a quoted text."""
    parts: list[str] = []
    values: dict[str, None] = {}
    texts: dict[str, None] = {}
    at = 0
    for piece in pieces:
        parts.append(source[at : piece.start])
        at = piece.end
        (values if piece.where == "code" else texts).update(dict.fromkeys(found.key for found in piece.found))
        match piece.where:
            case "code":
                before = " " if _is_word(source[piece.start - 1 : piece.start]) else ""
                after = " " if _is_word(source[piece.end : piece.end + 1]) else ""
                parts.append(f"{before}__v[{literal(piece.found[0])}]{after}")
            case "template":
                parts.append(braces % f"__t[{literal(piece.found[0])}]")
            case "string":
                parts.append(quoted(source, piece))
            case _:
                assert_never(piece.where)
    parts.append(source[at:])
    return Rewritten("".join(parts), tuple(values), tuple(texts))


def references(source: str, known: Callable[[Found], bool]) -> list[tuple[Where, Found]]:
    return [(piece.where, found) for piece in scan(source, known) for found in piece.found]


def scan(source: str, known: Callable[[Found], bool]) -> Iterator[Piece]:
    """Yield the pieces of `source` with references for which `known` is true, from left to right."""
    if "<" not in source and "${" not in source:
        return
    stack: list[int] = []  # open templates: brace depth inside their `${...}`, -1 while in the template's text
    at, end = 0, len(source)
    regex_next = True
    while at < end:
        if stack and stack[-1] < 0:
            at, found = _template_step(source, at, stack, known)
            if found is not None:
                yield Piece("template", found.start, found.end, (found,))
            regex_next = source[at - 1] != "`"
            continue
        char = source[at]
        if char in "<$" and (found := match_at(source, at, known)) is not None:
            yield Piece("code", found.start, found.end, (found,))
            at, regex_next = found.end, False
        elif match := _SPACE.match(source, at):
            at = match.end()
        elif match := _WORD.match(source, at):
            at, regex_next = match.end(), match[0] in _BEFORE_REGEX
        elif char in "'\"" and (match := _STRING[char].match(source, at)):
            inside = tuple(f for f in _in_string(match[1], at + 1) if known(f))
            if inside:
                yield Piece("string", at, match.end(), inside)
            at, regex_next = match.end(), False
        elif char == "`":
            stack.append(-1)
            at += 1
        elif match := _COMMENT.match(source, at):
            at = match.end()
        elif char == "/" and regex_next and (match := _REGEX.match(source, at)):
            at, regex_next = match.end(), False
        else:
            at, regex_next = at + 1, char not in ")]"
            if stack and char == "{":
                stack[-1] += 1
            elif stack and char == "}":
                stack[-1] -= 1  # at -1 we are back in the template's text


def _template_step(source: str, at: int, stack: list[int], known: Callable[[Found], bool]) -> tuple[int, Found | None]:
    """One step inside the text of a template: (new position, reference found there)."""
    if match := _TEMPLATE_TEXT.match(source, at):
        return match.end(), None
    char = source[at]
    if char == "`":
        stack.pop()
        return at + 1, None
    found = match_at(source, at, known)
    if found is not None:
        return found.end, found
    if char == "$":  # `${`: JavaScript's own
        stack[-1] = 0
        return at + 2, None
    return at + 1, None


def match_at(source: str, at: int, known: Callable[[Found], bool]) -> Found | None:
    env = source[at] == "$"
    match = (ENV if env else REFERENCE).match(source, at)
    if match is None:
        return None
    found = Found(match[1], at, match.end(), env)
    return found if known(found) else None


def _in_string(text: str, offset: int) -> Iterator[Found]:
    """Candidates in the raw text between two quotes; one after a backslash is the author's own text."""
    for found in find(text):
        at = found.start
        while at and text[at - 1] == "\\":
            at -= 1
        if (found.start - at) % 2 == 0:
            yield Found(found.text, found.start + offset, found.end + offset, found.env)


def _joined(source: str, piece: Piece) -> str:
    """`'Hi <name>!'` -> `('Hi ' + __t["name"] + '!')`. It starts with a text, so that `+` always joins."""
    quote = source[piece.start]
    parts: list[str] = []
    at = piece.start + 1
    for found in piece.found:
        parts += (f"{quote}{source[at : found.start]}{quote}", f"__t[{literal(found)}]")
        at = found.end
    parts.append(f"{quote}{source[at : piece.end - 1]}{quote}")
    return f"({' + '.join(parts)})"


def literal(found: Found) -> str:
    """Return the key as a string literal of both JavaScript and Python: JSON text is one, if it escapes no surrogate
    pairs."""
    return json.dumps(found.key, ensure_ascii=False)


def _is_word(char: str) -> bool:
    return char.isalnum() or char in ("_", "$") if char else False
