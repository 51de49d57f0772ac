"""`@block_type`: a block type of weft, from the fields of its BlockSpec and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Outcome, StepContext

Fields = ParamSpec("Fields")
End = TypeVar("End", bound=Outcome)


class BlockType(Generic[End]):
    """A Block whose `run` is a function."""

    def __init__(self, spec: BlockSpec, run: Callable[[StepContext], Coroutine[Any, Any, End]]) -> None:
        self.spec = spec
        self.run = run


class _Declare(Protocol):
    def __call__(self, run: Callable[[StepContext], Coroutine[Any, Any, End]], /) -> BlockType[End]: ...


def _taking_the_fields_of(make: Callable[Fields, BlockSpec]) -> Callable[Fields, _Declare]:
    def block_type(*args: Fields.args, **kwargs: Fields.kwargs) -> _Declare:
        spec = make(*args, **kwargs)
        return lambda run: BlockType(spec, run)

    return block_type


block_type = _taking_the_fields_of(BlockSpec)
