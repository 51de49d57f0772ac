"""The description of every built-in block type (params, outputs, exits, policy) is the one of the golden file.

`python -m tests.unit.executor.blocks.types.test_params_schemas` writes the file again, after a change that is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
import orjson

from compiler.catalog import BlockSpec
from executor.blocks.types.python import Python

COMMAND = "tests.unit.executor.blocks.types.test_params_schemas"
FILE = Path(__file__).with_name("schemas.json")
# Params with which outputs and cases of some types differ from those of empty params.
_EXAMPLES: tuple[dict[str, Any], ...] = (
    {},
    {
        "mode": "each",
        "results": "all",
        "memory": "chat",
        "output_schema": {"type": "object", "properties": {"total": {"type": "number"}}},
        "fields": {"properties": {"note": {"type": "string"}}},
        "body_schema": {"type": "object"},
        "schema": {"type": "object"},
        "input": {"day": 1},
        "routes": [{"id": "a", "title": "A"}],
        "cases": [{"id": "b"}],
        "actions": ["yes"],
        "metrics": [{"name": "polite"}],
    },
)


def test_schemas_are_those_of_the_golden_file() -> None:
    wanted, found = FILE.read_bytes().splitlines(), _described().splitlines()
    changed = [line.decode()[:60] for line in found if line not in wanted]
    assert not changed, f"{FILE.name} is stale, or a schema changed: run python -m {COMMAND}"
    assert found == wanted


def _described() -> bytes:
    """Return one line for each block type. Objects are ordered by name: JSON says nothing by their order."""
    return b"".join(orjson.dumps(_of(spec), option=orjson.OPT_SORT_KEYS) + b"\n" for spec in _specs())


def _specs() -> Iterator[BlockSpec]:
    for point in sorted(entry_points(group="weft.blocks"), key=lambda point: point.name):
        if point.value.startswith("executor."):
            yield point.load().spec
    yield Python({"quote": lambda item, amount=1: (item, amount)}).spec


def _of(spec: BlockSpec) -> dict[str, Any]:
    fixed = {name: value for name, value in msgspec.structs.asdict(spec).items() if not callable(value)}
    computed = {
        name: [msgspec.to_builtins(made(params)) for params in _EXAMPLES]
        for name in ("cases", "output_from")
        if (made := getattr(spec, name)) is not None
    }
    return {**fixed, **computed}


if __name__ == "__main__":
    FILE.write_bytes(_described())
