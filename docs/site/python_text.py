"""Docstrings of weft as Markdown: text, and the parameters that it explains in columns.

secret         keys those links, 16 bytes or more
processes, dask  for `policy.runner`; the rest of a long line
               is indented
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Self

import griffe

_ROW: Final = re.compile(r"([a-z_]\w*(?:, \w+)*) {2,}(\S.*)")
_MORE: Final = re.compile(r" {6,}(\S.*)")
_ERROR: Final = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")  # names of errors stand in texts as words
_CODE: Final = re.compile(r"(`[^`\n]+`)")


class Docstring(NamedTuple):
    before: str
    parameters: list[tuple[list[str], str]]
    after: str

    @classmethod
    def read(cls, text: str) -> Self:
        """Split a docstring at the rows of its parameters."""
        before: list[str] = []
        rows: list[tuple[list[str], str]] = []
        after: list[str] = []
        for line in text.splitlines():
            if not after and (row := _ROW.fullmatch(line)):
                rows.append((row[1].split(", "), row[2]))
            elif rows and not after and (more := _MORE.fullmatch(line)):
                names, about = rows[-1]
                rows[-1] = names, f"{about} {more[1]}"
            elif rows and (line or after):
                after.append(line)
            elif not rows:
                before.append(line)
        return cls("\n".join(before).strip("\n"), rows, "\n".join(after).strip("\n"))


def first(found: griffe.Object) -> str:
    """The first sentence of its text."""
    text = Docstring.read(found.docstring.value).before if found.docstring else ""
    text = text.partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":")


def spanned(text: str, link: Callable[[str], str | None]) -> str:
    """Text in which `<` is no tag, and code that is a public name is a link. Indented lines are code, and stay."""
    return "\n".join(line if line.startswith("    ") else _spanned(line, link) for line in text.split("\n"))


def _spanned(line: str, link: Callable[[str], str | None]) -> str:
    parts = _CODE.split(line)
    for at, part in enumerate(parts):
        if at % 2:
            target = link(part.strip("`"))
            parts[at] = part if target is None else f"[{part}]({target})"
        else:
            part = _ERROR.sub(lambda found: f"[{found[0]}]({target})" if (target := link(found[0])) else found[0], part)
            parts[at] = part.replace("<", "&lt;").replace("{", "&#123;").replace("*", "\\*").replace("_", "\\_")
    return "".join(parts)
