"""Blocks that choose a way, and containers that repeat one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from msgspec import UNSET, UnsetType

from compiler.builder.actions import Number
from compiler.builder.errors import BuildError
from compiler.builder.step import Block, Container, Options, Step, as_step

Then = Step | Sequence[Step] | None


class Case:
    """One way of a `Branch`: the first case whose expression `when` is true is taken; a case without `when` is the else
    case, the last. `then` is its step; if it is None, the case leads to the next step of the sequence."""

    def __init__(
        self, id: str, when: str | bool | UnsetType = UNSET, then: Then = None, *, title: str | UnsetType = UNSET
    ) -> None:
        self.id = id
        self.then = None if then is None else as_step(then)
        parts = {"id": id, "title": title, "when": when}
        self.document = {key: value for key, value in parts.items() if value is not UNSET}


class Branch(Block):
    """A condition: `Branch(when="<input.n> > 9", then=Http(...), otherwise=Set(...))`, or any number of cases. A case
    without a step leads to the next step of the sequence; `End()` ends its path."""

    def __init__(
        self,
        *cases: Case,
        when: str | UnsetType = UNSET,
        then: Then = None,
        otherwise: Then = None,
        **options: Unpack[Options],
    ) -> None:
        if when is not UNSET:
            cases = (*cases, Case("then", when, then), Case("else", then=otherwise))
        self._begin("condition", {"cases": [case.document for case in cases]}, options)
        if when is UNSET and (then is not None or otherwise is not None):
            raise BuildError(f"{self!r} has steps and no condition.", "Write when=, or cases.")
        if not cases:
            raise BuildError(f"{self!r} has no case.", 'Write when="<input.n> > 9" and then=, or cases.')
        self.on = {case.id: case.then for case in cases if case.then is not None} | self.on


class Router(Block):
    """Compares a value: `Router("<input.kind>", on={"a": Http(...), "b": Set(...)})`. The ways are those of
    `routes`, or without it those of `on`; `default` names the one of all other values."""

    def __init__(
        self,
        value: Any = UNSET,
        *,
        routes: Sequence[Mapping[str, Any]] | UnsetType = UNSET,
        default: str | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        if routes is UNSET:
            routes = [{"id": way, "equals": way} for way in options.get("on", {}) if way != default]
        self._begin("router", {"value": value, "routes": routes, "default": default}, options)


class Loop(Container):
    """Repeats its steps: one of `count`, `each` (items), `while_`, `until` and `do_while` (expressions).
    `finally_`: the cleanup, steps that run once when the loop has ended, also if it failed or was cancelled."""

    def __init__(
        self,
        *steps: Step | Sequence[Step],
        count: Number | UnsetType = UNSET,
        each: Any = UNSET,
        while_: str | UnsetType = UNSET,
        until: str | UnsetType = UNSET,
        do_while: str | UnsetType = UNSET,
        max: Number | UnsetType = UNSET,
        on_max: str | UnsetType = UNSET,
        results: str | UnsetType = UNSET,
        finally_: Then = None,
        **options: Unpack[Options],
    ) -> None:
        modes = {"for": ("count", count), "each": ("items", each), "while": ("condition", while_)}
        modes |= {"until": ("condition", until), "do_while": ("condition", do_while)}
        own = {**_mode(modes), "max": max, "on_max": on_max, "results": results}
        self._begin("loop", own, options)
        self._hold(steps, finally_)
        _check_mode(self, own, "count, each, while_, until or do_while")


class Each(Container):
    """Runs its steps for each of `items` side by side, or `count` times; at most `concurrency` at the same time.
    Output: `results`, in the order of the items. `finally_`: as in `Loop`, once after all of them."""

    def __init__(
        self,
        *steps: Step | Sequence[Step],
        items: Any = UNSET,
        count: Number | UnsetType = UNSET,
        concurrency: Number | UnsetType = UNSET,
        on_branch_error: str | UnsetType = UNSET,
        results: str | UnsetType = UNSET,
        finally_: Then = None,
        **options: Unpack[Options],
    ) -> None:
        own = _mode({"each": ("items", items), "count": ("count", count)})
        more = {"concurrency": concurrency, "on_branch_error": on_branch_error, "results": results}
        self._begin("parallel", own | more, options)
        self._hold(steps, finally_)
        _check_mode(self, own, "items or count")


class Break(Block):
    """Inside a loop: this iteration is the last one."""

    def __init__(self, **options: Unpack[Options]) -> None:
        self._begin("break", {}, options)


def _mode(modes: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """The params of the only mode that has a value; else none."""
    named = [(mode, param, value) for mode, (param, value) in modes.items() if value is not UNSET]
    if len(named) != 1:
        return {}
    ((mode, param, value),) = named
    return {"mode": mode, param: value}


def _check_mode(container: Container, own: Mapping[str, Any], modes: str) -> None:
    if "mode" not in own:
        raise BuildError(f"{container!r} needs exactly one of {modes}.")
