"""weft for Python programs: everything that a user touches, under one name.

    import weft

    async with weft.open("runs.db") as engine:
        run = await engine.run(document, {"amount": 12}, timeout_s=60)

A name is loaded when it is first used, so that `import weft` costs next to nothing. To add one: a row in `_NAMES`, the
same import below for type checkers and editors, and a section in docs/reference/python.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.schema_of import Param as Param
    from executor.blocks.base import Context as Context
    from executor.blocks.base import Done as Done
    from executor.blocks.base import Patch as Patch
    from executor.blocks.base import Suspend as Suspend
    from executor.blocks.typed import TypedBlock as TypedBlock
    from executor.blocks.typed import block as block
    from executor.embed import open_engine as open
    from executor.engine import Engine as Engine
    from executor.errors import AlreadyAnswered as AlreadyAnswered
    from executor.errors import AnswerInvalid as AnswerInvalid
    from executor.errors import BadRequest as BadRequest
    from executor.errors import BlockError as BlockError
    from executor.errors import Conflict as Conflict
    from executor.errors import InputInvalid as InputInvalid
    from executor.errors import LimitExceeded as LimitExceeded
    from executor.errors import NotFound as NotFound
    from executor.errors import QueueFull as QueueFull
    from executor.errors import StoreError as StoreError
    from executor.errors import WeftError as WeftError

# The public name, and where it is: `module`, or `module:name` when it has another one there.
_NAMES = {
    "AlreadyAnswered": "executor.errors",
    "AnswerInvalid": "executor.errors",
    "BadRequest": "executor.errors",
    "BlockError": "executor.errors",
    "Conflict": "executor.errors",
    "Context": "executor.blocks.base",
    "Done": "executor.blocks.base",
    "Engine": "executor.engine",
    "InputInvalid": "executor.errors",
    "LimitExceeded": "executor.errors",
    "NotFound": "executor.errors",
    "Param": "compiler.schema_of",
    "Patch": "executor.blocks.base",
    "QueueFull": "executor.errors",
    "StoreError": "executor.errors",
    "Suspend": "executor.blocks.base",
    "TypedBlock": "executor.blocks.typed",
    "WeftError": "executor.errors",
    "block": "executor.blocks.typed",
    "open": "executor.embed:open_engine",
}

__all__ = [
    "AlreadyAnswered",
    "AnswerInvalid",
    "BadRequest",
    "BlockError",
    "Conflict",
    "Context",
    "Done",
    "Engine",
    "InputInvalid",
    "LimitExceeded",
    "NotFound",
    "Param",
    "Patch",
    "QueueFull",
    "StoreError",
    "Suspend",
    "TypedBlock",
    "WeftError",
    "block",
    "open",
]


def __getattr__(name: str) -> Any:
    place = _NAMES.get(name)
    if place is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    module, _, inside = place.partition(":")
    value = getattr(import_module(module), inside or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
