"""XML as a JSON value, for answers of services and feeds. A document with a DTD is refused: the entities that it
declares could fill the memory. Nothing outside the document is read.
"""

from __future__ import annotations

from typing import Any, Final
from xml.parsers import expat

from executor.errors import BlockError

DEPTH_MAX: Final = 64


def xml_value(text: str | bytes) -> Any:
    """Return the value of the root: an element is its text, or an object of its children by their names without a
    prefix, with attributes as `@name` and text as `#text`; children of one name are a list. Text that is no XML stays
    as it is. Raises BlockError(xml_invalid)."""
    if text.lstrip()[:1] not in ("<", b"<"):
        return text
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = reader.text, reader.doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise _invalid(f"it cannot be read: {error}") from error
    return reader.root


class _Reader:
    def __init__(self) -> None:
        self.root: Any = None
        self._open: list[tuple[dict[str, Any], list[str]]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise _invalid(f"it is nested more than {DEPTH_MAX} levels deep")
        own = {f"@{_local(each)}": value for each, value in attributes.items() if not each.startswith("xmlns")}
        self._open.append((own, []))

    def text(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def end(self, name: str) -> None:
        own, texts = self._open.pop()
        text = "".join(texts).strip()
        value: Any = own or text
        if own and text:
            own["#text"] = text
        if not self._open:
            self.root = value
            return
        above, local = self._open[-1][0], _local(name)
        if local not in above:
            above[local] = value
        elif isinstance(above[local], list):
            above[local].append(value)
        else:
            above[local] = [above[local], value]

    def doctype(self, *declared: Any) -> None:
        raise _invalid("it has a document type declaration")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _invalid(message: str) -> BlockError:
    return BlockError(f"the XML is not valid: {message}", code="xml_invalid", retryable=False)
