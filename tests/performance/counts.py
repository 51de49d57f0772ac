"""The instructions of the interpreter, and the calls of functions in C, that each function needs: they are counted, and
compared with what was recorded."""

from __future__ import annotations

import re
import selectors
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("counts.json")
HERE, ROOT = f"{Path(__file__).parent}/", f"{Path(__file__).parents[2]}/"
PLACES = (ROOT, f"{Path(msgspec.__file__).parents[1]}/", f"{Path(selectors.__file__).parent}/")
MORE_MAX = 0.05
SHOWN = 10
RECORD = "python -m tests.performance --record"


class Cost(Struct, array_like=True):
    """The instructions and calls of one step."""

    instructions: float = 0
    calls: float = 0


class Costs(Struct):
    """The cost of a step of a workload. `functions`: each that needs a thousandth of it or more."""

    total: Cost
    functions: dict[str, Cost]


class Recorded(Struct):
    """Costs by workload. Another version of Python has other instructions."""

    python: str
    workloads: dict[str, Costs]


def recorded() -> Recorded:
    return msgspec.json.decode(FILE.read_bytes(), type=Recorded)


def as_json(found: Recorded) -> bytes:
    """A line for each function."""
    data = msgspec.json.format(msgspec.json.encode(found), indent=1)
    return re.sub(rb"\[\s+([\d.]+),\s+([\d.]+)\s+\]", rb"[\1, \2]", data) + b"\n"


def worse(name: str, before: Costs, now: Costs) -> str:
    """Say what needs more than it may, and which functions need most of that; "" if nothing does."""
    found = []
    for what in ("instructions", "calls"):
        was, is_ = getattr(before.total, what), getattr(now.total, what)
        if is_ > was * (1 + MORE_MAX):
            of = {
                function: tuple(getattr(costs.functions.get(function, Cost()), what) for costs in (before, now))
                for function in {**before.functions, **now.functions}
            }
            grown = sorted(of, key=lambda function: of[function][0] - of[function][1])[:SHOWN]
            found.append(f"{name}: {is_:,.1f} {what} instead of {was:,.1f}, {is_ / was - 1:+.1%}; +5 % is the most")
            found += [f"  {of[one][1] - of[one][0]:+8.1f}  {one}" for one in grown if of[one][1] > of[one][0]]
    return "\n".join([*found, f"Needed for what the change gives? {RECORD}"]) if found else ""


class Counter:
    """Counts in each thread that calls `arrive`, from then on and also in the functions that it is in."""

    def __init__(self) -> None:
        self._on = False
        self._found: dict[int, tuple[CodeType, list[int], Any]] = {}

    @contextmanager
    def counting(self, on: bool = True) -> Iterator[None]:
        self._on = on
        self.arrive()
        try:
            yield
        finally:
            self._on = False
            self.arrive()

    def arrive(self) -> None:
        sys.setprofile(self._call if self._on else None)
        sys.settrace(self._enter if self._on else None)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frame.f_trace = self._enter(frame, "call", None) if self._on else None
            frame = frame.f_back

    def costs(self, steps: int) -> Costs:
        functions: dict[str, Cost] = {}
        for code, (instructions, calls), _ in self._found.values():
            if not code.co_filename.startswith(HERE):
                cost = functions.setdefault(_name(code), Cost())
                cost.instructions += instructions / steps
                cost.calls += calls / steps
        total = Cost(sum(one.instructions for one in functions.values()), sum(one.calls for one in functions.values()))
        large = {name: _short(one) for name, one in functions.items() if one.instructions * 1_000 >= total.instructions}
        return Costs(_short(total), dict(sorted(large.items())))

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._of(frame.f_code)[2]

    def _call(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            self._of(frame.f_code)[1][1] += 1

    def _of(self, code: CodeType) -> tuple[CodeType, list[int], Any]:
        """By its address, as a code is compared by all that it consists of."""
        found = self._found.get(id(code))
        if found is None:
            both = [0, 0]

            def count(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
                both[0] += 1
                return count

            found = self._found[id(code)] = code, both, count
        return found


def _name(code: CodeType) -> str:
    """The same wherever weft and Python are."""
    place = next((place for place in PLACES if code.co_filename.startswith(place)), "")
    return f"{code.co_filename.removeprefix(place)}:{code.co_qualname}"


def _short(cost: Cost) -> Cost:
    return Cost(round(cost.instructions, 1), round(cost.calls, 1))
