"""Read a file or a text for a `file` block: tables, JSON, XML, the text of PDF, parts of pages."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from typing import Any, Final

import orjson

from executor.blocks.knowledge.text import text_of
from executor.blocks.sandbox import MIB
from executor.blocks.types.file_contents import decoded
from executor.blocks.types.params import invalid
from executor.blocks.types.xml import xml_value
from executor.errors import BadRequest, BlockError
from executor.kernel.process.extras import install

READ_BYTES_MAX: Final = 16 * MIB
PAGE_BYTES_MAX: Final = 4 * MIB  # a page takes about a second for each
MATCHES_MAX: Final = 10_000
READ_AS: Final = {
    "text": "Text, also of a PDF",
    "table": "Rows of a table (CSV, Excel)",
    "json": "JSON",
    "xml": "XML",
    "fields": "Parts of a page, by CSS selectors",
    "markdown": "A page as Markdown",
    "html": "Markdown as HTML",
    "base64": "Base64",
}
_PAGES: Final = ("fields", "markdown", "html")


def read(data: bytes, file: Mapping[str, Any], way: str, select: Mapping[str, Any]) -> Any:
    """Return the value that is in `data`. Raises BlockError: file_not_text, file_unreadable, file_too_large,
    html_missing, params_invalid."""
    if way == "base64":
        return base64.b64encode(data).decode()
    if way == "text" and (data.startswith(b"%PDF-") or file.get("media_type") == "application/pdf"):
        try:
            return text_of(data, "application/pdf", str(file.get("name")))
        except BadRequest as error:
            raise BlockError(error.message, code="file_unreadable", retryable=False, hint=error.hint or "") from None
    if way in _PAGES and len(data) > PAGE_BYTES_MAX:
        message = f"a page may have {PAGE_BYTES_MAX:,} bytes, it has {len(data):,}"
        raise BlockError(message, code="file_too_large", retryable=False)
    text = decoded(data, file)
    if way in _PAGES:
        return _page(text, way, select)
    try:
        return _READERS[way](text)
    except (csv.Error, orjson.JSONDecodeError) as error:
        raise _unreadable(f"{READ_AS[way]} expected: {error}") from None


def _table(text: str) -> list[dict[str, Any]]:
    """The first line has the names of the columns. The separator is the one that it has most."""
    first = text.partition("\n")[0]
    separator = max(",;\t|", key=first.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey="", restval="")
    return [{name: value for name, value in row.items() if name} for row in rows]


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": lambda text: text,
    "table": _table,
    "json": orjson.loads,
    "xml": xml_value,
}


# --- pages, with the libraries of the extra `html` ---


def _page(text: str, way: str, select: Mapping[str, Any]) -> Any:
    try:
        if way == "html":
            return import_module("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        soup = import_module("bs4").BeautifulSoup(text, "html.parser")
        if way == "fields":
            return {name: _chosen(soup, name, one) for name, one in select.items()}
        for hidden in soup(["script", "style", "head", "template", "noscript", "svg"]):
            hidden.decompose()
        made = import_module("markdownify").MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(soup)
        return "\n".join(line.rstrip() for line in made.strip().splitlines())
    except ImportError:
        hint = f"{install('html')}; then restart it"
        message = "reading pages needs libraries that are not installed on this server"
        raise BlockError(message, code="html_missing", retryable=False, hint=hint) from None
    except RecursionError:
        raise _unreadable("its elements are nested too deeply") from None


def _chosen(soup: Any, name: str, one: Any) -> Any:
    """Return what a selector finds: the first, or `all`; its text, or what `get` names."""
    rule = {"css": one} if isinstance(one, str) else one
    if not isinstance(rule, Mapping) or not isinstance(rule.get("css"), str) or not rule["css"].strip():
        raise invalid(
            f"select.{name} must be a CSS selector", 'such as "h1", or {"css": "a", "get": "href", "all": true}'
        )
    get, without = str(rule.get("get") or "text"), str(rule.get("without") or "")
    try:
        found = soup.select(rule["css"], limit=MATCHES_MAX if rule.get("all") else 1)
        values = [_value(each, get, without) for each in found]
    # The second is raised for what CSS has and the library lacks, such as `p::before`.
    except (import_module("soupsieve").SelectorSyntaxError, NotImplementedError) as error:
        raise invalid(f"select.{name} is no CSS selector: {str(error).splitlines()[0]}") from None
    return values if rule.get("all") else (values[0] if values else None)


def _value(element: Any, get: str, without: str) -> Any:
    if get == "text":
        element = copy(element) if without else element
        for one in element.select(without) if without else ():
            one.extract()
        return " ".join(element.get_text(" ").split())
    if get == "html":
        return element.decode_contents()
    found = element.get(get)
    return " ".join(found) if isinstance(found, list) else found


def _unreadable(why: str) -> BlockError:
    return BlockError(f"the file cannot be read: {why}", code="file_unreadable", retryable=False)
