"""Documents of other formats, before they are compiled: importers convert them, and `as_ours` asks them.

An importer is a module, or an object, that an installed package has in the entry point group `weft.imports`. The server
finds them (`executor.kernel.run.imports`); nothing here knows one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic, Report
from compiler.document import Limits, read
from compiler.references import escape

Source = bytes | bytearray | str | Mapping[str, Any]

_THROW: Final = "throw new Error("
_NOT_IMPORTED: Final = re.compile(r" was not imported from [^.]{1,40}\. ")
_MISSING: Final = re.compile(r" \(not imported from [^()]{1,40}\)$")


class Imported(Struct):
    """A document in the format weft/1. `diagnostics` are the parts that were left out or changed; an error among them
    means that there is no document. `pointers`: from pointers into `document` (`/blocks/x`, `/edges/0`) to pointers
    into the source, for findings. `format` is the name of the importer, None for a document of ours."""

    document: dict[str, Any]
    diagnostics: list[Diagnostic] = []
    pointers: dict[str, str] = {}
    format: str | None = None


class Importer(Protocol):
    """Both functions are called with plain JSON values of bounded depth, and must not raise."""

    def detect(self, document: Mapping[str, Any]) -> bool:
        """Return whether the document has this format. It is asked about no document of weft/1."""

    def convert(
        self, document: Mapping[str, Any], *, env_names: Collection[str] | None, catalog: Catalog | None
    ) -> Imported:
        """Convert. `env_names` are the names that `${NAME}` may read, None if they are unknown. Without a catalog,
        blocks of unknown types stay: that is enough for readers of the structure."""


Importers = Mapping[str, Importer]


def as_ours(
    document: Mapping[str, Any],
    importers: Callable[[], Importers],
    env_names: Collection[str] | None = None,
    catalog: Catalog | None = None,
) -> Imported:
    """Return the document in the format weft/1. A document in no known format is returned as it is. `importers` is
    called for another format than that."""
    if not str(document.get("format")).startswith("weft/"):
        for name, importer in importers().items():
            if importer.detect(document):
                made = importer.convert(document, env_names=env_names, catalog=catalog)
                return Imported(made.document, made.diagnostics, made.pointers, name)
    return Imported(dict(document))


def accept(
    source: Source,
    importers: Callable[[], Importers],
    *,
    limits: Limits,
    env_names: Collection[str] | None = None,
    catalog: Catalog | None = None,
) -> Imported:
    """Return what `compile_document` takes. Text that cannot be read has errors among its diagnostics."""
    report = Report()
    value = read(source, limits, report)
    if value is None:
        return Imported({}, report.sorted())
    return as_ours(value, importers, env_names, catalog)


def stand_in(text: str, source: str, advice: str) -> dict[str, Any]:
    """Return the params of a `function` block in the place of one that cannot be imported: it fails when it runs.
    `text` names the block that it stands for, `source` the program that had it; `advice` is the next step."""
    quoted = orjson.dumps(f"{text} was not imported from {source}. {advice}").decode()
    no_references = quoted.replace("<", "\\u003c").replace("$", "\\u0024")
    return {"code": f"{_THROW}{no_references})"}


def missing_workflow(title: str, source: str) -> str:
    """Return the name of a workflow that does not exist, for the tool of an agent that cannot be imported."""
    return f"{title} (not imported from {source})"


def not_imported(document: Mapping[str, Any]) -> list[Diagnostic]:
    """Return findings for the substitutes of blocks and tools that were not imported, in a document of ours. Disabled
    blocks do not count."""
    found: list[Diagnostic] = []
    blocks = document.get("blocks")
    for id, block in blocks.items() if isinstance(blocks, Mapping) else ():
        if not isinstance(block, Mapping) or block.get("enabled") is False:
            continue
        pointer, params = f"/blocks/{escape(id)}", block.get("params")
        if not isinstance(params, Mapping):
            continue
        if block.get("type") == "function" and (hint := _advice_in(params.get("code"))) is not None:
            message = f'"{str(block.get("name") or id)[:80]}" was not imported, and fails when the run comes to it.'
            found.append(Diagnostic("not_imported", "warning", pointer, message, hint, id))
        tools = params.get("tools") if block.get("type") == "agent" else None
        for at, tool in enumerate(tools if isinstance(tools, list) else ()):
            name = tool.get("workflow") if isinstance(tool, Mapping) else None
            if isinstance(name, str) and (match := _MISSING.search(name)):
                title = name[: match.start()][:80]
                message = f'The tool "{title}" was not imported. The agent fails when the model calls it.'
                hint = "Choose a workflow or a block that does the same, or remove the tool."
                found.append(Diagnostic("not_imported", "warning", f"{pointer}/params/tools/{at}", message, hint, id))
    return found


def _advice_in(code: Any) -> str | None:
    """Return what to do about a block whose code `stand_in` wrote, or None for other code."""
    if not isinstance(code, str) or not (code.startswith(_THROW) and code.endswith(")")):
        return None
    try:
        text = orjson.loads(code[len(_THROW) : -1])
    except orjson.JSONDecodeError:
        return None
    match = _NOT_IMPORTED.search(text) if isinstance(text, str) else None
    return text[match.end() :] if match is not None else None
