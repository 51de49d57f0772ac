"""The importers of installed packages: the entry point group `weft.imports`. All ways by which documents come in ask
them here, before anything is compiled."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from compiler import imports
from compiler.catalog import Catalog
from compiler.compile import DEFAULT_LIMITS
from compiler.document import Limits
from compiler.imports import Imported, Importer, Importers, Source
from executor.kernel.process.extras import entry_points

GROUP: Final = "weft.imports"
_log = logging.getLogger(__name__)


@cache
def importers() -> Importers:
    """Return the importers by name. One that cannot be loaded is skipped and logged: a broken package must not keep the
    others from being used. So is a second one of the same name."""
    found: dict[str, Importer] = {}
    for point in entry_points(GROUP):
        try:
            importer = point.load()
            if not callable(importer.detect) or not callable(importer.convert):
                raise TypeError("detect or convert is not a function")
        except Exception:
            _log.exception("importer %r (%s) cannot be loaded and is skipped", point.name, point.value)
            continue
        if found.setdefault(point.name, importer) is not importer:
            _log.error("importer %r of %s is skipped: another package has one of that name", point.name, point.value)
    return found


def as_ours(
    document: Mapping[str, Any], env_names: Collection[str] | None = None, catalog: Catalog | None = None
) -> Imported:
    """Return the document in the format weft/1; see `compiler.imports`."""
    return imports.as_ours(document, importers, env_names, catalog)


def accept(
    source: Source, catalog: Catalog, env_names: Collection[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Imported:
    """Return a document for `compile_document`."""
    return imports.accept(source, importers, limits=limits, env_names=env_names, catalog=catalog)
