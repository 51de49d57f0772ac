"""Blocks as Python objects: `Block` for any type, `Container` for those with a body; and how they are connected:
`Sequence`, `Parallel`, `End`, `Graph`. They only hold the arguments; `workflow.py` makes the document.

A step is anything that has a place in a sequence. It is built after `Exits`: the
exits of blocks that it is connected to, or None if nothing comes before it.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Steps
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import PurePath
from typing import Any, ClassVar, Final, Literal, Protocol, TypedDict, Unpack

from msgspec import UNSET

from compiler.builder.errors import BuildError, user_place
from compiler.catalog import EVENT
from compiler.diagnostics import suggest
from compiler.document import JSON_DEPTH_MAX
from compiler.references import escape
from compiler.wiring import BODY, ERROR, FINALLY, OUT

Exit = tuple[str, str]  # the id of a block, and the name of its handle
Exits = list[Exit] | None
_TRIGGERS: Final = frozenset(["start", "schedule", "webhook", "form_trigger", "chat_trigger"])


def is_trigger(type: str) -> bool:
    return type in _TRIGGERS or type.startswith(EVENT)


class Options(TypedDict, total=False):
    """Arguments of every block.

    id            of the block, which never changes; else derived from the name or the class, the second with a number
    name          what people see, and references use
    assign_to     `"$.hit"`: the output is stored in this workflow variable as well
    on            steps after exits, by handle: `on={"reject": SendEmail(...)}`
    on_error      a step that runs when the last attempt has failed; `"continue"`: the output is then null
    retry         attempts including the first, or all settings: {"max_attempts": 5, "backoff": "fixed"}
    timeout       seconds for one attempt
    on_lost       if the server dies meanwhile: "retry", "ask" a person, or "fail"
    cache, limit, group, runner, skip_if    as in the policy of a document
    policy        other fields of the policy
    output        JSON Schema that the output must fit
    params        params of the type for which the class has no argument
    description   a text for people
    enabled       False: the block is not compiled
    at, size      place on the canvas, in pixels
    more          other fields of the block in the document
    """

    id: str
    name: str
    assign_to: str
    on: Mapping[str, Step | Steps[Step]]
    on_error: Step | Steps[Step] | Literal["continue", "fail"]
    retry: int | Mapping[str, Any]
    timeout: float
    on_lost: Literal["retry", "ask", "fail"]
    cache: Mapping[str, Any]
    limit: Mapping[str, Any]
    group: str
    runner: Literal["inline", "process", "dask"]
    skip_if: str
    policy: Mapping[str, Any]
    output: Mapping[str, Any]
    params: Mapping[str, Any]
    description: str
    enabled: bool
    at: Steps[float]
    size: Steps[float]
    more: Mapping[str, Any]


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_NO_PARAMS = ("self", "steps", "finally_", "options", "__class__")  # among the arguments of a block
# The options that are fields of a block, and those that are fields of its policy.
FIELDS: Final = ("name", "description", "assign_to", "output", "enabled", "at", "size")
FIELD_OF: Final = {"assign_to": "assign", "output": "output_schema"}
POLICY: Final = ("on_lost", "cache", "limit", "group", "runner", "skip_if")


class Site(Protocol):
    def id_of(self, block: Block) -> str: ...

    def add(self, block: Block, behind: Exits, parent: str | None) -> str: ...

    def connect(self, edge: Mapping[str, Any]) -> None: ...


class Step(ABC):
    """`place`: the line of the source, `flow.py:12`."""

    def __init__(self) -> None:
        self.place = _place()

    def inner(self) -> Iterable[Step]:
        return ()

    @abstractmethod
    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        """Add blocks and connections. Returns the exits that the next step is connected to."""


class Sequence(Step):
    """One step after another. An empty sequence continues at the next step. `id` is for readers of the source: the
    document has the blocks alone."""

    def __init__(self, *steps: Step | Steps[Step], id: str | None = None) -> None:
        super().__init__()
        self.steps = [as_step(step) for step in steps]

    def inner(self) -> Iterable[Step]:
        return self.steps

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        for step in self.steps:
            behind = step.build(site, behind, parent)
        return behind


class Block(Step):
    """A block of any type, also of an installed package: `Block("connector.slack", params={"operation": "post"})`."""

    CLASSES: ClassVar[dict[str, type[Block]]] = {}  # by block type
    RENAMED: ClassVar[Mapping[str, str]] = {}  # arguments that are called otherwise than their params
    MODES: ClassVar[Mapping[str, tuple[str, str]]] = {}  # arguments of which one is given: its mode, and its param
    type: str

    def __init_subclass__(cls, type: str | None = None) -> None:
        if type is not None:
            cls.type = type
            cls.CLASSES[type] = cls

    def __init__(self, type: str, **options: Unpack[Options]) -> None:
        self.type = type
        self._begin({}, options)

    def _begin(self, arguments: Mapping[str, Any], options: Options) -> None:
        """Set up a block. `arguments` are those of the constructor; UNSET ones are left out."""
        super().__init__()
        for key in options:
            if key not in Options.__annotations__:
                raise BuildError(f"{_class(self)} ({self.place}) has no argument {key}.", self._instead_of(key))
        self.id = options.get("id")
        self.options = options
        given = {key: value for key, value in arguments.items() if key not in _NO_PARAMS and value is not UNSET}
        modes = [key for key in self.MODES if key in given]
        if self.MODES and len(modes) != 1:
            *others, last = self.MODES
            raise BuildError(f"{self!r} needs exactly one of {', '.join(others)} or {last}.")
        self.params: dict[str, Any] = {}
        for key in modes:
            self.params["mode"], param = self.MODES[key]
            self.params[param] = given.pop(key)
        self.params |= {self.RENAMED.get(key, key): value for key, value in given.items()}
        self.params |= options.get("params", {})
        self.on: dict[str, Step] = {handle: as_step(one) for handle, one in options.get("on", {}).items()}
        on_error = options.get("on_error")
        self.on_error = None if on_error is None or isinstance(on_error, str) else as_step(on_error)

    def _instead_of(self, argument: str) -> str:
        if argument == "finally_":
            return "Loop, Each, Container and Workflow have it."
        own = (one.name for one in signature(type(self).__init__).parameters.values() if one.kind in _NAMED)
        known = sorted({*own, *Options.__annotations__} - {"self"})
        return suggest(argument, known) or f"There are {', '.join(known)}."

    def __repr__(self) -> str:
        return f'{_class(self)} "{self.id}" ({self.place})' if self.id else f"{_class(self)} ({self.place})"

    @property
    def stem(self) -> str:
        """The base of a generated id."""
        own = _class(self)
        text = self.options.get("name") or (self.type if own in ("Block", "Container") else own)
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", text).strip("_").lower()
        return words[:100] or "block"

    def inner(self) -> Iterator[Step]:
        yield from self.on.values()
        if self.on_error is not None:
            yield self.on_error

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        own = site.add(self, behind, parent)
        if self.type == "note":
            return behind
        left: list[Exit] = []
        for handle in self._handles():
            if handle in self.on:
                left += self.on[handle].build(site, [(own, handle)], parent) or []
            else:
                left.append((own, handle))
        if self.on_error is not None:
            left += self.on_error.build(site, [(own, ERROR)], parent) or []
        return left

    def _handles(self) -> list[str]:
        if (named := EXITS.get(self.type)) is not None:
            known = named(self.params)
        elif self.type == "approval" and self.on:
            actions = self.params.get("actions")
            known = [] if OUT in self.on else _texts(actions if isinstance(actions, list) else ["approve", "reject"])
        else:
            known = [] if self.on else [OUT]
        return list(dict.fromkeys([*known, *self.on]))

    def block(self, block_id: str, parent: str | None) -> dict[str, Any]:
        """Return the block as in a document. Raises BuildError."""
        options: Mapping[str, Any] = self.options
        fields = {FIELD_OF.get(key, key): options[key] for key in FIELDS if key in options}
        made: dict[str, Any] = {"type": self.type}
        made |= {key: fields.pop(key) for key in ("name", "description") if key in fields}
        if parent is not None:
            made["parent"] = parent
        made |= {key: fields.pop(key) for key in ("at", "size") if key in fields}
        if self.params or "params" in options:
            made["params"] = self.params
        if (policy := self._policy()) is not None:
            made["policy"] = policy
        made |= fields | options.get("more", {})
        return {key: plain(value, f'Block "{block_id}" ({self.place}): {key}') for key, value in made.items()}

    def _policy(self) -> dict[str, Any] | None:
        options = self.options
        policy: dict[str, Any] = {}
        if "retry" in options:
            retry = options["retry"]
            policy["retry"] = {"max_attempts": retry} if isinstance(retry, int) else retry
        if "timeout" in options:
            policy["timeout_s"] = options["timeout"]
        if isinstance(options.get("on_error"), str):
            policy["on_error"] = options["on_error"]
        policy |= {key: options[key] for key in POLICY if key in options}
        policy |= options.get("policy", {})
        return policy if policy or "policy" in options else None


class Container(Block):
    """A block with a body: a sequence of steps. `Loop` and `Each` are the usual ones. `finally_` is its cleanup: a step
    that runs after the body has ended in any way."""

    def __init__(
        self,
        type: str,
        *steps: Step | Steps[Step],
        finally_: Step | Steps[Step] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.type = type
        self._begin({}, options)
        self._hold(steps, finally_)

    def _hold(self, steps: Steps[Step | Steps[Step]], cleanup: Step | Steps[Step] | None) -> None:
        self.steps = [as_step(step) for step in steps]
        self.cleanup = None if cleanup is None else as_step(cleanup)

    def inner(self) -> Iterator[Step]:
        yield from self.steps
        if self.cleanup is not None:
            yield self.cleanup
        yield from super().inner()

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        exits = super().build(site, behind, parent)
        own = site.id_of(self)
        inside: Exits = [(own, BODY)]
        for step in self.steps:
            inside = step.build(site, inside, own)
        if self.cleanup is not None:
            self.cleanup.build(site, [(own, FINALLY)], own)
        return exits


def as_step(value: Any) -> Step:
    """A step, or a list of steps, which is a sequence. Raises BuildError."""
    if isinstance(value, Step):
        return value
    if isinstance(value, list | tuple):
        return Sequence(*value)
    raise BuildError(
        f"{_place()}: {value!r:.80} is not a step of a workflow.",
        "Steps are blocks such as Http, and Sequence, Parallel, End.",
    )


def _class(block: Block) -> str:
    return type(block).__name__


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _ids(items: Any) -> list[str]:
    return _texts(item.get("id") for item in items if isinstance(item, dict)) if isinstance(items, list | tuple) else []


def _of_router(params: Mapping[str, Any]) -> list[str]:
    return [*_ids(params.get("routes")), *_texts([params.get("default")])]


# Types whose exits are not `out`. Exits without a step continue at the next step.
EXITS: Final[Mapping[str, Callable[[Mapping[str, Any]], list[str]]]] = {
    "condition": lambda params: _ids(params.get("cases")),
    "router": _of_router,
    "model_router": lambda params: _ids(params.get("routes")),
    "guardrail": lambda params: ["pass", "fail"],
    "response": lambda params: [],
    "continue_as_new": lambda params: [],
}


def _place() -> str:
    file, line = user_place()
    return f"{PurePath(file).name}:{line}"


def edge(source: str, handle: str, target: str) -> dict[str, Any]:
    return {"source": source, "target": target} | ({} if handle == OUT else {"handle": handle})


class Parallel(Step):
    """Steps that begin at the same time; the next step waits for all of them. For a branch per item see `Each`."""

    def __init__(self, *branches: Step | Steps[Step], id: str | None = None) -> None:
        super().__init__()
        self.branches = [as_step(branch) for branch in branches]

    def inner(self) -> Iterable[Step]:
        return self.branches

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        left = [branch.build(site, behind, parent) for branch in self.branches]
        ends = [exits for exits in left if exits is not None]
        return list(dict.fromkeys(end for exits in ends for end in exits)) if ends else behind


class End(Step):
    """The path ends here: what comes next is not connected to it."""

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        return []


class Edge:
    """A connection of a `Graph`, between blocks or ids of blocks. `more`: other fields of it (`id`, `label`, `at`)."""

    def __init__(
        self, source: Block | str, target: Block | str, handle: str = OUT, *, more: Mapping[str, Any] | None = None
    ) -> None:
        self.source = source
        self.target = target
        self.handle = handle
        self.more = more or {}


class Graph(Step):
    """Blocks, and connections between them that are not a sequence. It is all of a workflow, of a container, or of a
    cleanup. In a container the first blocks have a connection from its exit `body`, in a cleanup from `finally`."""

    def __init__(self, *steps: Step, edges: Steps[Edge]) -> None:
        super().__init__()
        self.steps = [as_step(step) for step in steps]
        self.edges = list(edges)

    def inner(self) -> Iterable[Step]:
        return self.steps

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        if behind is not None and behind != [(parent, BODY)] and {handle for _, handle in behind} != {FINALLY}:
            raise BuildError(f"Graph ({self.place}) is all of a workflow or of a container.", "Put nothing beside it.")
        for step in self.steps:
            step.build(site, None, parent)
        for one in self.edges:
            source, target = (end if isinstance(end, str) else site.id_of(end) for end in (one.source, one.target))
            where = f"Edge {source} -> {target} ({self.place}): more"
            site.connect(edge(source, one.handle, target) | plain(one.more, where))
        return []


_FIRST: Final = r"""(?:\.[^.\[\]\s"<>]+|\["[^"\\<>\n]+"\])"""
_PATH: Final = re.compile(rf"""\${_FIRST}(?:{_FIRST}|\[\d{{1,9}}\])*""")


@dataclass(frozen=True, slots=True)
class Reference:
    """A workflow variable, or a part of one. As a param of its own it keeps the type of the value; inside a text,
    `f"Got {ref('$.hit.body')}"`, it is the reference `<workflow.hit.body>`."""

    path: str

    def __str__(self) -> str:
        return f"<workflow{self.path[1:]}>"


def ref(path: str) -> Reference:
    """`path` is `$.name`, `$.name.field[0]` or `$["odd name"]`. Raises BuildError."""
    if not isinstance(path, str) or _PATH.fullmatch(path) is None:
        raise BuildError(
            f"ref({path!r}): this is not a path.",
            'Write "$.name" or "$.name.field[0]"; the output of a block is read by a text: "<block.field>".',
        )
    return Reference(path)


def plain(value: Any, where: str) -> Any:
    """`value` as JSON values alone, copied. `where` begins the message, a pointer follows it. Raises BuildError."""
    return _plain(value, where, "", JSON_DEPTH_MAX)


def _plain(value: Any, where: str, pointer: str, depth: int) -> Any:
    if depth == 0:
        raise BuildError(f"{where}{pointer} is nested deeper than {JSON_DEPTH_MAX} levels.")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            raise BuildError(f"{where}{pointer} is {value}, which JSON does not have.")
        case Reference():
            return {"$ref": value.path}
        case Mapping():
            return {
                _key(key, where, pointer): _plain(item, where, f"{pointer}/{escape(str(key))}", depth - 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_plain(item, where, f"{pointer}/{index}", depth - 1) for index, item in enumerate(value)]
        case _:
            raise BuildError(
                f"{where}{pointer} is of type {type(value).__name__}, which JSON does not have.",
                "Use texts, numbers, true, false, null, lists and objects; a block computes what depends on the run.",
            )


def _key(key: Any, where: str, pointer: str) -> str:
    if isinstance(key, str):
        return key
    raise BuildError(f"{where}{pointer} has the key {key!r}, and keys of JSON are texts.", f'Write "{key}".')
