"""The text of a document, its chunks, and the words of these.

A chunk has whole paragraphs as far as they fit. Each begins with the headings above it, by which it is understood
alone, and with the end of the chunk before. Sizes are in characters: tokens differ from model to model.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import orjson

from executor.errors import BadRequest
from executor.kernel.process.extras import install
from executor.kernel.values.payload import render

_NOT_SHOWN: Final = frozenset({"script", "style", "head", "template", "noscript", "svg"})
_HEADINGS: Final = {f"h{n}": "#" * n for n in range(1, 7)}
_PARAGRAPHS: Final = frozenset(
    {"p", "div", "section", "article", "li", "ul", "ol", "table", "tr", "br", "pre", "blockquote", "main", *_HEADINGS}
)
_HEADING: Final = re.compile(r"(#{1,6}) +(\S.*)")
_BREAKS: Final = ("\n", ". ", "! ", "? ", "。", "; ", ", ", " ")  # where a long paragraph is cut, the best first
# Chinese, Japanese and Korean have no blanks between words: two characters each are one.
_WIDE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_WIDE}]+|[^\W_{_WIDE}]+")
WORD_CHARS_MAX: Final = 64
HEADINGS_MAX: Final = 200  # characters of the headings that a chunk begins with


def text_of(data: bytes, media_type: str, name: str) -> str:
    """Return the text of a file, headings as in Markdown. Takes long for a PDF. Raises BadRequest."""
    if media_type == "application/pdf" or data.startswith(b"%PDF-"):
        return _pdf(data, name)
    text = _decoded(data, name).replace("\r\n", "\n")
    if media_type == "text/html":
        page = _Page()
        page.feed(text)
        page.close()
        return "".join(page.found)
    if media_type == "text/csv":
        return _rows(list(csv.DictReader(io.StringIO(text))))
    if media_type == "application/json":
        return _json(text, name)
    return text


def chunks_of(text: str, chars: int, overlap: int) -> list[str]:
    """Return the chunks of a text, each of at most `chars` characters, headings and overlap included."""
    found: list[str] = []
    headings: dict[int, str] = {}
    above, before, here = "", "", ""
    level = is_bare = 0  # is_bare: the last heading has no text yet
    longest = min(HEADINGS_MAX, chars // 4)

    def end() -> None:
        nonlocal before, here
        if here:
            found.append("\n\n".join(part for part in (above, before, here) if part))
            before, here = _end_of(here, overlap), ""

    for paragraph in _paragraphs(text):
        heading = _HEADING.fullmatch(paragraph)
        if heading and len(heading[2]) <= longest:
            end()
            if is_bare and len(heading[1]) <= level:
                found.append(above)
            level, is_bare = len(heading[1]), 1
            headings = {of: title for of, title in headings.items() if of < level} | {level: heading[2]}
            above, before = " > ".join(headings[of] for of in sorted(headings))[-longest:], ""
            continue
        is_bare = 0
        room = chars - len(above) - overlap - 4
        for piece in _pieces(paragraph, room):
            if here and len(here) + len(piece) + 2 > room:
                end()
            here = f"{here}\n\n{piece}" if here else piece
    end()
    return [*found, above] if is_bare else found


def words_of(text: str) -> list[tuple[int, int]]:
    """Return the CRC-32 of each word, and how often it is there. Stored words are found by it again to be deleted: what
    it returns for a text must stay."""
    return sorted(Counter(map(word_number, words_in(text))).items())


def words_in(text: str) -> Iterator[str]:
    """Yield the words, in lower case and without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = unicodedata.normalize("NFC", "".join(char for char in plain if not unicodedata.combining(char)))
    for match in _WORD.finditer(plain):
        word = match[0]
        if word[0] >= "\u3040" and _WIDE_ONLY.fullmatch(word) and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word[:WORD_CHARS_MAX]


_WIDE_ONLY: Final = re.compile(rf"[{_WIDE}]+")


def word_number(word: str) -> int:
    return zlib.crc32(word.encode())


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, and headings as paragraphs of their own."""
    for block in re.split(r"\n\s*\n", text):
        lines: list[str] = []
        for line in block.split("\n"):
            if _HEADING.fullmatch(line.strip()):
                yield from ("\n".join(lines),) if lines else ()
                yield line.strip()
                lines = []
            elif line.strip():
                lines.append(line.rstrip())
        if lines:
            yield "\n".join(lines)


def _pieces(paragraph: str, room: int) -> Iterator[str]:
    """Cut what is longer than `room` at the end of a line, a sentence or a word, in its second half if possible."""
    while len(paragraph) > room:
        cut = room
        for mark in _BREAKS:
            at = paragraph.rfind(mark, room // 2, room)
            if at > 0:
                cut = at + len(mark)
                break
        yield paragraph[:cut].strip()
        paragraph = paragraph[cut:].lstrip()
    if paragraph.strip():
        yield paragraph


def _end_of(text: str, overlap: int) -> str:
    """Return the last `overlap` characters, from the beginning of a word."""
    if len(text) <= overlap or not overlap:
        return text[: len(text) if overlap else 0]
    return text[-overlap:].partition(" ")[2] or text[-overlap:]


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(name, f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise _refused(name, "it is not text")
    return text


def _refused(name: str, why: str) -> BadRequest:
    hint = "Collections take text in UTF-8: plain, Markdown, HTML, CSV, JSON; and PDF with text in it."
    return BadRequest(f"the file {name[:100]!r} cannot be read: {why}", code="knowledge_unreadable", hint=hint)


class _Page(HTMLParser):
    """The text that a page shows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _NOT_SHOWN:
            self._hidden += 1
        elif tag in _PARAGRAPHS:
            self.found.append(f"\n\n{_HEADINGS[tag]} " if tag in _HEADINGS else "\n" if tag == "br" else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _NOT_SHOWN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _PARAGRAPHS and tag != "br":
            self.found.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(re.sub(r"\s+", " ", data))


def _json(text: str, name: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _refused(name, f"it is not JSON: {error}") from None
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return _rows(value)
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _rows(rows: list[dict[str, Any]]) -> str:
    """Make a paragraph of each row: a chunk has whole rows, and the names of their columns."""
    return "\n\n".join(
        "\n".join(f"{key}: {render(value)}" for key, value in row.items() if key and value not in (None, ""))
        for row in rows
    )


def _pdf(data: bytes, name: str) -> str:
    if find_spec("pypdf") is None:
        hint = f"{install('pdf')}; then restart it"
        message = "PDF needs a library that is not installed on this server"
        raise BadRequest(message, code="pdf_missing", hint=hint)
    pypdf = import_module("pypdf")
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _refused(name, f"it is not a PDF: {error}") from None
    text = "\n\n".join(pages)
    if not text.strip():
        raise _refused(name, "the PDF has no text, only pictures")
    return text.replace("\0", "")
