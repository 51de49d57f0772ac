"""The key under which an output is kept for later: a hash of everything that could make it another one.

Secrets are not part of it, only the names they go by: a key must not reveal a secret. So an output outlives the secret
it was fetched with; `weft cache clear` forgets it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from compiler.plan import Cache, Node
from executor.kernel.values.bound import Bound
from executor.kernel.values.redact import MARK

# More than this is kept only in the journal of its run.
OUTPUT_MAX_BYTES: Final = 1024 * 1024


def schema_sig(schema: Mapping[str, Any] | None) -> str:
    """sha256 of the canonical JSON of an output schema; '' without one."""
    return "" if schema is None else hashlib.sha256(_canonical(schema)).hexdigest()


def cache_key(cache: Cache, node: Node, *, run_id: str, workflow: str, values: Any, secrets: Sequence[str] = ()) -> str:
    """Return the cache key. `values` is the value of the key expression, or the resolved params, with the names of
    secrets in place of them; `secrets` are these names."""
    scope = {"run": [run_id, node.block], "workflow": [workflow, node.block], "global": []}[cache.scope]
    names = sorted(str(ref.path[0]) for ref in node.needs if ref.kind == "env")
    own_key = cache.key is not None
    # The form of the key: another one when it changes, and nothing older is found. In form 1 all secrets looked alike.
    form = [2, secrets] if secrets or MARK.encode() in _canonical(values) else [1]
    parts = [
        form[0],
        cache.scope,
        scope,
        node.type,
        cache.version,
        schema_sig(node.output_schema),
        own_key,
        [] if own_key else names,
        values,
        *form[1:],
    ]
    return hashlib.sha256(_canonical(parts)).hexdigest()


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def plain(value: Any) -> Any:
    """Resolved params as JSON: programs and expressions with the values they read."""
    match value:
        case Bound():
            return {"$code": value.source, "values": dict(value.values), "texts": dict(value.texts)}
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value
