"""A document as Python calls: `Http("https://…", id="hit")`, or `Block` if the class cannot express all of it.

The steps are found in the graph: which blocks follow each other, begin side by side, or follow an exit. They are built
again and compared; where their connections differ, the blocks and connections are written one by one (`Graph`). So
nothing is lost, whatever was drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from inspect import Parameter, signature
from typing import Any, Final

from msgspec import Struct, field

from compiler.builder.blocks import Branch, Case
from compiler.builder.errors import BuildError
from compiler.builder.step import (
    EXITS,
    FIELD_OF,
    FIELDS,
    POLICY,
    Block,
    Container,
    Edge,
    End,
    Exit,
    Graph,
    Parallel,
    Sequence,
    is_trigger,
)
from compiler.builder.workflow import Workflow
from compiler.wiring import BODY, ERROR, FINALLY, OUT

NESTING_MAX: Final = 30  # branches in branches; deeper ones are no easier to read as steps
_OPTIONS: Final = {FIELD_OF.get(option, option): option for option in FIELDS}  # by field of a block
_FIELDS: Final = (*_OPTIONS, "policy")  # in this order


class Call(Struct):
    """`cls(*args, **kwargs)`; among the arguments may be calls, and lists and objects of them. It can be carried out,
    which proves that it fits, or printed (`source.py`)."""

    cls: type[Any]
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)


def recover(document: Mapping[str, Any]) -> Call:
    """Return the call of `Workflow` that makes `document`, which must be one that can be compiled."""
    graph = _Document(document)
    odd = {region for region in graph.regions if graph.has_odd_edges(region)}
    for _ in range(2):
        call = graph.workflow(odd)
        try:
            made = carry_out(call).document()
        except BuildError:
            odd = set(graph.regions)
            continue
        differ = graph.regions_that_differ(made)
        if not differ:
            break
        odd |= differ
        call = graph.workflow(odd)
    order = [*document["blocks"]]
    if list(carry_out(call).document()["blocks"]) != order:
        call.kwargs["order"] = order
    return call


class _Odd(Exception):
    """This is no sequence."""


class _Document:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.blocks: Mapping[str, dict[str, Any]] = document["blocks"]
        self.edges: list[dict[str, Any]] = list(document.get("edges") or [])
        self.inside: dict[str | None, list[str]] = {None: []}
        for block_id in self.blocks:
            self.inside.setdefault(self.parent(block_id), []).append(block_id)
        self.regions = list(self.inside)
        self.after: dict[Exit, list[str]] = {}
        self.before: dict[str, list[Exit]] = {}
        for edge in self.edges:
            leaves = (edge["source"], edge.get("handle") or OUT)
            self.after.setdefault(leaves, []).append(edge["target"])
            self.before.setdefault(edge["target"], []).append(leaves)

    def parent(self, block_id: str) -> str | None:
        parent = self.blocks[block_id].get("parent")
        return parent if parent in self.blocks else None

    def region_of(self, edge: Mapping[str, Any]) -> str | None:
        return self.parent(edge["target"]) if edge["target"] in self.blocks else None

    def handles(self, block_id: str) -> list[str]:
        """Return the exits of the block that have a connection, without those into the block itself."""
        return [
            handle
            for (source, handle), targets in self.after.items()
            if source == block_id and any(self.parent(one) != block_id for one in targets if one in self.blocks)
        ]

    def has_odd_edges(self, region: str | None) -> bool:
        return any(
            edge.keys() - {"source", "target", "handle"} for edge in self.edges if self.region_of(edge) == region
        )

    def regions_that_differ(self, made: Mapping[str, Any]) -> set[str | None]:
        def by_region(edges: Iterable[Mapping[str, Any]]) -> dict[str | None, Counter[tuple[str, ...]]]:
            found: dict[str | None, Counter[tuple[str, ...]]] = {region: Counter() for region in self.regions}
            for edge in edges:
                found[self.region_of(edge)][edge["source"], edge.get("handle") or OUT, edge["target"]] += 1
            return found

        wanted, got = by_region(self.edges), by_region(made["edges"])
        return {region for region in self.regions if wanted[region] != got[region]}

    def workflow(self, odd: set[str | None]) -> Call:
        document = self.document
        steps, cleanup = self.steps(None, odd)
        named = {
            key: document[key]
            for key in ("description", "input", "variables", "settings")
            if document.get(key) is not None
        }
        known = {"format", "name", "blocks", "edges", *named}
        more = {key: value for key, value in document.items() if key not in known}
        if document.get("format", "weft/1") != "weft/1":
            more["format"] = document["format"]
        name = document.get("name")
        if name is None and "name" in document:
            more["name"] = None
        return Call(Workflow, [name, *steps], named | _finally(cleanup) | ({"more": more} if more else {}))

    def steps(self, region: str | None, odd: set[str | None]) -> tuple[list[Call], list[Call]]:
        if region not in odd:
            try:
                return _Region(self, region, odd).steps()
            except _Odd:
                odd.add(region)
        blocks = [self.call(block_id, odd) for block_id in self.inside.get(region, [])]
        edges = [self._edge(edge) for edge in self.edges if self.region_of(edge) == region]
        return [Call(Graph, list(blocks), {"edges": edges})], []

    def call(self, block_id: str, odd: set[str | None]) -> Call:
        """Return the call of a block with the steps inside it, without those after it."""
        contains = block_id in self.inside
        call = of_block(block_id, self.blocks[block_id], self.parent(block_id), contains)
        if contains or issubclass(call.cls, Container):
            steps, cleanup = self.steps(block_id, odd) if contains else ([], [])
            call.args += steps
            call.kwargs |= _finally(cleanup)
        return call

    def _edge(self, edge: Mapping[str, Any]) -> Call:
        handle = edge.get("handle")
        more = {key: value for key, value in edge.items() if key not in ("source", "target", "handle")}
        args = [edge["source"], edge["target"], *([handle] if handle and handle != OUT else [])]
        return Call(Edge, args, {"more": more} if more else {})


class _Region:
    """The steps of the root, or of a container. Raises _Odd."""

    def __init__(self, graph: _Document, region: str | None, odd: set[str | None]) -> None:
        self._graph = graph
        self._region = region
        self._odd = odd
        self._left = {one for one in graph.inside.get(region, []) if graph.blocks[one]["type"] != "note"}
        self._depth = 0

    def steps(self) -> tuple[list[Call], list[Call]]:
        graph, region = self._graph, self._region
        notes = [one for one in graph.inside.get(region, []) if graph.blocks[one]["type"] == "note"]
        if region is not None:
            steps, _ = self._sequence([(region, BODY)])
            owners = [region]
        else:
            steps = self._from_the_start()
            owners = [one for one in graph.inside[None] if is_trigger(graph.blocks[one]["type"])]
        cleanup, _ = self._sequence([(owner, FINALLY) for owner in owners])
        if self._left:
            raise _Odd
        return steps + [graph.call(note, self._odd) for note in notes], cleanup

    def _from_the_start(self) -> list[Call]:
        graph = self._graph
        heads = [one for one in graph.inside[None] if one in self._left and not graph.before.get(one)]
        if len(heads) == 1:
            (head,) = heads
            steps, _ = self._beginning(head)
            triggers = [one for one, block in graph.blocks.items() if is_trigger(block["type"])]
            is_plain = graph.blocks[head] == {"type": "start"} and head == "start"
            return steps[1:] if is_plain and len(triggers) == 1 and steps[0].kwargs == {"id": "start"} else steps
        if not heads:
            raise _Odd
        branches = [self._beginning(head) for head in heads]
        return self._continued(*self._side_by_side(branches))

    def _beginning(self, block_id: str) -> tuple[list[Call], list[Exit]]:
        call, exits = self._block(block_id)
        more, exits = self._sequence(exits)
        return [call, *more], exits

    def _continued(self, call: Call, exits: list[Exit]) -> list[Call]:
        more, _ = self._sequence(exits)
        return [call, *more]

    def _sequence(self, exits: list[Exit]) -> tuple[list[Call], list[Exit]]:
        """Return the steps that follow these exits together, until other paths join; and the exits there."""
        graph = self._graph
        steps: list[Call] = []
        while exits:
            targets = graph.after.get(exits[0], [])
            if not targets or any(graph.after.get(one, []) != targets for one in exits):
                break
            if any(target not in self._left or set(graph.before[target]) != set(exits) for target in targets):
                break
            if len(targets) == 1:
                call, exits = self._block(targets[0])
            else:
                call, exits = self._side_by_side([self._beginning(target) for target in targets])
            steps.append(call)
        return steps, exits

    def _side_by_side(self, branches: list[tuple[list[Call], list[Exit]]]) -> tuple[Call, list[Exit]]:
        exits = [exit for _, left in branches for exit in left]
        if self._goes_on(exits):
            branches = [self._ended(steps, left) for steps, left in branches]
        return Call(Parallel, [_one(steps) for steps, _ in branches]), [one for _, left in branches for one in left]

    def _block(self, block_id: str) -> tuple[Call, list[Exit]]:
        """Return the call of a block with the steps after its exits, and its open exits."""
        graph = self._graph
        self._left.discard(block_id)
        call = graph.call(block_id, self._odd)
        known, used = self._handles(block_id)
        block_type = graph.blocks[block_id]["type"]
        if known == [OUT] and not used - {OUT, ERROR}:
            ways = {OUT: ([], [(block_id, OUT)])} if ERROR not in used else {OUT: self._way((block_id, OUT), False)}
        else:
            others = [one for one in graph.handles(block_id) if one in used - {ERROR}]
            ways = {handle: self._way((block_id, handle)) for handle in dict.fromkeys([*known, *others])}
        if ERROR in used:
            ways[ERROR] = self._way((block_id, ERROR))
        if self._goes_on([exit for _, left in ways.values() for exit in left]):
            ways = {handle: self._ended(steps, left) for handle, (steps, left) in ways.items()}
        on: dict[str, Any] = {}
        for handle, (steps, _) in ways.items():
            if handle == ERROR:
                call.kwargs["on_error"] = _one(steps)
            elif steps or handle not in known:
                on[handle] = _one(steps)
        if known not in ([], [OUT]) and block_type == "approval" and not on:
            on = {handle: Call(Sequence) for handle in known}  # without any, all of them would lead to `out`
        _put_ways(call, on)
        return call, [exit for _, left in ways.values() for exit in left]

    def _handles(self, block_id: str) -> tuple[list[str], set[str]]:
        """Return the exits that continue by default, and those with a connection."""
        block = self._graph.blocks[block_id]
        inner = (BODY, FINALLY) if is_trigger(block["type"]) else (BODY,)
        used = {handle for handle in self._graph.handles(block_id) if handle not in inner}
        params = block.get("params")
        if (named := EXITS.get(block["type"])) is not None:
            return named(params if isinstance(params, dict) else {}), used
        if block["type"] == "approval" and used - {OUT, ERROR} and OUT not in used:
            actions = params.get("actions") if isinstance(params, dict) else None
            return list(actions if isinstance(actions, list) else ["approve", "reject"]), used
        return ([OUT] if not used - {OUT, ERROR} else []), used

    def _way(self, exit: Exit, follow: bool = True) -> tuple[list[Call], list[Exit]]:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise _Odd
        found = self._sequence([exit]) if follow else ([], [exit])
        self._depth -= 1
        return found

    def _goes_on(self, exits: list[Exit]) -> bool:
        return any(self._graph.after.get(exit) for exit in exits)

    def _ended(self, steps: list[Call], exits: list[Exit]) -> tuple[list[Call], list[Exit]]:
        """Add an `End` to a path without a continuation, if other paths beside it continue."""
        if self._goes_on(exits) or not exits:
            return steps, exits
        return [*steps, Call(End)], []


def _finally(cleanup: list[Call]) -> dict[str, Any]:
    return {"finally_": _one(cleanup)} if cleanup else {}


def _one(steps: list[Call]) -> Any:
    if len(steps) == 1:
        return steps[0]
    return list(steps) if steps else Call(Sequence)


def _put_ways(call: Call, on: dict[str, Any]) -> None:
    if call.cls is Branch:
        cases = {case.args[0]: case for case in call.args}
        if len(cases) == len(call.args):
            for handle in [handle for handle in on if handle in cases]:
                case = cases[handle]
                case.kwargs = {"then": on.pop(handle), **case.kwargs}
    if on:
        call.kwargs["on"] = on


def carry_out(value: Any) -> Any:
    """Return the objects that the calls in `value` make. Raises BuildError."""
    if isinstance(value, Call):
        arguments = [carry_out(one) for one in value.args]
        return value.cls(*arguments, **{key: carry_out(one) for key, one in value.kwargs.items()})
    if isinstance(value, list):
        return [carry_out(one) for one in value]
    if isinstance(value, dict):
        return {key: carry_out(one) for key, one in value.items()}
    return value


def of_block(block_id: str, block: Mapping[str, Any], parent: str | None, contains: bool) -> Call:
    """Return the call of a block without its steps. `contains`: there are blocks inside it."""
    options = _options(block_id, block, parent)
    cls = Block.CLASSES.get(block["type"])
    params = block.get("params")
    holds = cls is not None and (not contains or issubclass(cls, Container))
    if cls is not None and holds and isinstance(params, dict | None):
        call = _typed(cls, dict(params or {}), options, "params" in block)
        with suppress(BuildError, TypeError):
            if carry_out(call).block(block_id, parent) == block:
                return call
    if "params" in block:
        options = {"id": block_id, "params": params, **options}
    return Call(Container if contains else Block, [block["type"]], {"id": block_id} | options)


def _typed(cls: type[Block], left: dict[str, Any], options: dict[str, Any], has_params: bool) -> Call:
    if cls is Branch:
        return _branch(left, options)
    is_empty = has_params and not left
    kwargs: dict[str, Any] = {}
    for argument, (mode, param) in cls.MODES.items():
        if left.get("mode") == mode and param in left:
            kwargs[argument] = left.pop(param)
            del left["mode"]
    found = list(signature(cls.__init__).parameters.values())[1:]
    args: list[Any] = []
    for one in found:
        param = cls.RENAMED.get(one.name, one.name)
        if param not in left or one.name in cls.MODES:
            continue
        if one.kind is Parameter.POSITIONAL_OR_KEYWORD and len(args) == found.index(one):
            args.append(left.pop(param))
        elif one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            kwargs[one.name] = left.pop(param)
    if left or is_empty:
        kwargs["params"] = left
    return Call(cls, args, {"id": options["id"], **kwargs, **options})


def _branch(params: dict[str, Any], options: dict[str, Any]) -> Call:
    cases = params.pop("cases", None)
    args = []
    for case in cases if isinstance(cases, list) else ():
        if not isinstance(case, dict) or not isinstance(case.get("id"), str):
            break
        rest = {"title": case["title"]} if "title" in case else {}
        args.append(Call(Case, [case["id"], *([case["when"]] if "when" in case else [])], rest))
    return Call(Branch, args, options | ({"params": params} if params else {}))


def _options(block_id: str, block: Mapping[str, Any], parent: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {"id": block_id}
    more: dict[str, Any] = {}
    for key in sorted(block, key=lambda key: _FIELDS.index(key) if key in _FIELDS else len(_FIELDS)):
        value = block[key]
        if key in ("type", "params") or (key == "parent" and value == parent):
            continue
        if key == "policy" and isinstance(value, dict):
            options |= _policy(value)
        elif key in _OPTIONS and value is not None:
            options[_OPTIONS[key]] = value
        else:
            more[key] = value
    return options | ({"more": more} if more else {})


def _policy(policy: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    rest = dict(policy)
    if isinstance(retry := rest.get("retry"), dict):
        plain = list(retry) == ["max_attempts"] and type(retry["max_attempts"]) is int
        options["retry"] = retry["max_attempts"] if plain else retry
        del rest["retry"]
    for key, option in (("timeout_s", "timeout"), *((key, key) for key in POLICY)):
        if rest.get(key) is not None:
            options[option] = rest.pop(key)
    return options | ({"policy": rest} if rest or not policy else {})
