"""Which environment names a document reads, block by block. Needs no sound document: drafts are asked, too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from compiler.bind import is_env_name
from compiler.catalog import Catalog
from compiler.javascript import references
from compiler.needs import declares
from compiler.references import Found, find, texts
from compiler.schema import checker_of


def environment_names(
    document: Mapping[str, Any], catalog: Catalog, known: Collection[str] = frozenset()
) -> dict[str, list[str]]:
    """By name the ids of the blocks with `${NAME}` in a param or in skip_if, in document order. `known`: the names that
    are set here; a name that is not counts if it is written as environment names are. Never raises."""
    names: dict[str, list[str]] = {}
    blocks = document.get("blocks")
    for block_id, block in blocks.items() if isinstance(blocks, dict) else ():
        if isinstance(block, dict):
            for name in dict.fromkeys(_names_of(block, catalog, known)):
                names.setdefault(name, []).append(str(block_id))
    return names


def _names_of(block: Mapping[str, Any], catalog: Catalog, known: Collection[str]) -> Iterator[str]:
    given, type, policy = block.get("params"), block.get("type"), block.get("policy")
    params = given if isinstance(given, dict) else {}
    spec = catalog.get(type) if isinstance(type, str) else None
    kinds = checker_of(spec).kinds(params) if spec is not None else {}
    for pointer, text, _ in texts(params, ()):
        match kinds.get(pointer):
            case "literal":
                pass
            case None:
                yield from (found.text for found in find(text) if found.env and is_env_name(found.text, known))
            case _:
                yield from _names_in_code(text, known)
    skip_if = policy.get("skip_if") if isinstance(policy, dict) else None
    cache = policy.get("cache") if isinstance(policy, dict) else None
    for source in (skip_if, cache.get("key") if isinstance(cache, dict) else None):
        if isinstance(source, str):
            yield from _names_in_code(source, known)


def _names_in_code(source: str, known: Collection[str]) -> list[str]:
    def is_environment(found: Found) -> bool:
        return found.env and is_env_name(found.text, known) and not declares(source, found.text)

    return [found.text for _, found in references(source, is_environment)]
