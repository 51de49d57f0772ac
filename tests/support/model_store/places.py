"""Places of limits of blocks, by the rule "places of blocks"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from executor.kernel.store.topics.places import RESERVED, USED, WAITS, Ask, Assigned, PlaceRow, PlaceState


class ModelPlaces:
    _open: Mapping[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, tuple[Ask, str, PlaceState]] = {}  # by number, with the asker
        self._last_place = 0

    async def ask_places(self, asker: str, asks: Sequence[Ask]) -> Assigned:
        asked: list[int | None] = []
        begin = []
        for ask in asks:
            if not self._counts(ask):
                asked.append(None)
                continue
            same = [n for n, (a, _, _) in self._places.items() if _attempt(a) == _attempt(ask)]
            if same:
                old, _, state = self._places[same[0]]
                state = state if old.epoch == ask.epoch else WAITS
                self._places[same[0]] = (replace(old, epoch=ask.epoch), asker, state)
                begin += same if state == USED else []
            else:
                self._last_place += 1
                same = [self._last_place]
                self._places[self._last_place] = (ask, asker, WAITS)
            asked += same
        own, others = self._assign(asker, sorted({ask.key for ask in asks}))
        return Assigned(tuple(asked), tuple(sorted(begin + own)), others)

    async def assign_places(self, asker: str, keys: Sequence[str]) -> Assigned:
        own, others = self._assign(asker, keys)
        for number, (ask, of, state) in self._places.items():
            if of == asker and state == RESERVED and self._counts(ask):
                self._places[number] = (ask, of, USED)
                own.append(number)
        return Assigned((), tuple(sorted(own)), others)

    async def places_to_assign(self, asker: str, keys: Sequence[str]) -> list[str]:
        found = {ask.key for ask, of, state in self._places.values() if of == asker and state == RESERVED}
        for key in keys:
            waiting = self._waiting(key)
            if waiting and self._held(key) < self._places[waiting[0]][0].at_most:
                found.add(key)
        return sorted(found)

    async def places_of(self, run_id: str) -> list[PlaceRow]:
        return [
            PlaceRow(number, ask.node, ask.attempt, ask.epoch, state, ask.key, ask.at_most, self._held(ask.key))
            for number, (ask, _, state) in sorted(self._places.items())
            if ask.run_id == run_id
        ]

    def _leave_places(self, run_id: str, epoch: int, left: Sequence[tuple[str, int]]) -> None:
        for number, (ask, _, _) in list(self._places.items()):
            if ask.run_id == run_id and (ask.epoch < epoch or (ask.node, ask.attempt) in left):
                del self._places[number]

    def _assign(self, asker: str, keys: Sequence[str]) -> tuple[list[int], bool]:
        own, others = [], False
        for key in keys:
            for number in self._waiting(key):
                ask, of, _ = self._places[number]
                if self._held(key) >= ask.at_most:
                    break
                self._places[number] = (ask, of, USED if of == asker else RESERVED)
                if of == asker:
                    own.append(number)
                others = others or of != asker
        return own, others

    def _counts(self, ask: Ask) -> bool:
        run = self._open.get(ask.run_id)
        return run is not None and run.row.epoch == ask.epoch

    def _held(self, key: str) -> int:
        return sum(ask.key == key and state != WAITS and self._counts(ask) for ask, _, state in self._places.values())

    def _waiting(self, key: str) -> list[int]:
        places = sorted(self._places.items())
        return [n for n, (ask, _, state) in places if ask.key == key and state == WAITS and self._counts(ask)]


def _attempt(ask: Ask) -> Ask:
    return replace(ask, key="", at_most=0, epoch=0)
