"""Finds where a block may hold a secret: in params whose schema has `x-weft: secret`."""

from __future__ import annotations

from typing import Any

import orjson

from compiler.catalog import BlockSpec
from compiler.plan import Node
from compiler.references import ENV, texts
from compiler.schema import checker_of


def environment_names(node: Node) -> tuple[str, ...]:
    return tuple(sorted({str(ref.path[0]) for ref in node.needs if ref.kind == "env"}))


def names_elsewhere(node: Node, spec: BlockSpec) -> frozenset[str]:
    """Return the names that the node reads in a place that is not for secrets."""
    params: Any = orjson.loads(bytes(node.params))
    params = params if isinstance(params, dict) else {}
    permitted = checker_of(spec).secret_places(params)
    found = {name for pointer, text, _ in texts(params, ()) if pointer not in permitted for name in ENV.findall(text)}
    policy = node.policy
    for text in (policy.skip_if, policy.cache and policy.cache.key, policy.limit and policy.limit.key):
        found.update(ENV.findall(text) if text else ())
    return frozenset(found) & frozenset(environment_names(node))
