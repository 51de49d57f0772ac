"""Documents in our format, whatever format they were written in, for editors and viewers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from msgspec import Struct

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic
from compiler.imports import sim


class OurDocument(Struct, frozen=True):
    """A document in our format. `imported` is its former format, None for a document of ours, which is returned
    unchanged. `diagnostics` are the parts that the import left out or changed."""

    document: dict[str, Any]
    imported: Literal["sim"] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def as_ours(
    document: Mapping[str, Any], env_names: Collection[str] | None = None, catalog: Catalog | None = None
) -> OurDocument:
    """Return the document in the format weft/1. Never raises: a document in no known format is returned as it is.
    Without a catalog, blocks without a counterpart stay as they are, which is enough for readers of its structure."""
    if sim.detect(document) != "sim":
        return OurDocument(dict(document))
    imported = sim.import_workflow(document, env_names=env_names, catalog=catalog)
    return OurDocument(imported.document, "sim", tuple(imported.diagnostics))
