"""Work on the event loop in slices: the view of a run of 100,000 steps takes a second, in which other runs and requests
proceed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
import orjson

from executor.kernel.journal.projection import NodeState, Projection

T = TypeVar("T")
U = TypeVar("U")

SLICE_S: Final = 0.005
DECODED_AT_ONCE: Final = 32 * 1024  # bytes, well below a millisecond


class Slices:
    """Between two small pieces of work: `if slices.is_over: await slices.rest()`, which lets other tasks run."""

    __slots__ = ("_now_s", "_until_s")

    def __init__(self) -> None:
        self._now_s = asyncio.get_running_loop().time
        self._until_s = self._now_s() + SLICE_S

    @property
    def is_over(self) -> bool:
        return self._now_s() >= self._until_s

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until_s = self._now_s() + SLICE_S

    async def of(self, make: Callable[[T], U], items: Iterable[T]) -> tuple[U, ...]:
        """Return `make` of each, where there may be many. Nothing else may change `items` meanwhile."""
        made = []
        for item in items:
            if self.is_over:
                await self.rest()
            made.append(make(item))
        return tuple(made)

    async def decoded(self, data: bytes) -> Any:
        """Return the value of JSON that may be long: the output of a loop has a part for each iteration."""
        if self.is_over:
            await self.rest()
        if len(data) <= DECODED_AT_ONCE:
            return orjson.loads(data)
        match data.lstrip()[:1]:
            case b"{":
                members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
                return {name: await self.decoded(bytes(part)) for name, part in members.items()}
            case b"[":
                return await self._decoded_items(msgspec.json.decode(data, type=list[msgspec.Raw]))
            case _:
                return orjson.loads(data)

    async def _decoded_items(self, items: list[msgspec.Raw]) -> list[Any]:
        made: list[Any] = []
        some, size = list[msgspec.Raw](), 0
        for item in items:
            if size + len(item) > DECODED_AT_ONCE:
                made += _list_of(some)
                some, size = [], 0
                if self.is_over:
                    await self.rest()
            if len(item) > DECODED_AT_ONCE:
                made.append(await self.decoded(bytes(item)))
            else:
                some.append(item)
                size += len(item)
        made += _list_of(some)
        return made


def _list_of(items: list[msgspec.Raw]) -> list[Any]:
    made: list[Any] = orjson.loads(b"[%s]" % b",".join(items))
    return made


class SlicedProjection(Projection):
    """Its nodes do not end, and are not freed, all at once: each is when it is taken out."""

    _has_ended = False

    def end(self) -> None:
        self._has_ended = True

    def taken_out(self) -> Iterator[NodeState]:
        """Yield the nodes, in the order in which they came."""
        keys = list(self.nodes)
        keys.reverse()
        while keys:  # they are freed one by one as well
            state = self.nodes.pop(keys.pop())
            if self._has_ended:
                state.end()
            yield state
