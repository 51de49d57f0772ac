"""The block types of the Python functions of this process: `python` calls them, an `agent` has them as tools, `durable`
runs those with `@weft.durable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compiler.builder.errors import DefinitionError
from executor.blocks.types.agent.block import AgentBlock
from executor.blocks.types.durable import durable_blocks
from executor.blocks.types.python import Function, Python, import_functions, is_module, load_module, steps_of
from executor.kernel.handler.base import Block


def python_blocks(named: Iterable[str]) -> list[Block]:
    """Return the block types for these functions, as `import_functions` takes them, and for the durable functions of
    files and modules; none without any. Raises ValueError."""
    named = list(named)
    found = import_functions(named)
    modules = [load_module(text) for text in named if is_module(text)]
    try:
        durable = durable_blocks(value for module in modules for value in vars(module).values())
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    return [*_calling(found), *durable]


def blocks_of(workflows: Iterable[Any], functions: Mapping[str, Function] | None) -> list[Block]:
    """Return the block types for the steps of these workflows, these functions, and durable functions. Raises
    ValueError, DefinitionError."""
    workflows = list(workflows)
    return [*_calling({**steps_of(workflows), **(functions or {})}), *durable_blocks(workflows)]


def _calling(functions: Mapping[str, Function]) -> list[Block]:
    if not functions:
        return []
    python = Python(functions)
    return [python, AgentBlock(python)]
