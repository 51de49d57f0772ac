"""One trace of a workflow function: the blocks that its calls record, and the document they make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, Final, NoReturn, ParamSpec

import msgspec

from compiler.bind import RESERVED
from compiler.builder.blocks import Set, Start
from compiler.builder.errors import DefinitionError, is_of_user, raised, user_place
from compiler.builder.step import Block, edge
from compiler.document import BLOCKS_MAX
from compiler.references import find, normalize, parse
from compiler.signature import Unfit, write
from compiler.tracing.graph import Edges, Node, Scope
from compiler.tracing.source import Sources
from compiler.tracing.values import DURABLE, Condition, Traced, reference, written
from compiler.wiring import OUT

P = ParamSpec("P")

START: Final = "start"
_AWAITS: Final = (
    "a workflow function awaits only steps and what weft offers, and weft.gather for calls side by side. Await other "
    f"things inside a step, {DURABLE}."
)
_BODY = ("item", "index", "items", "iteration")  # what a container has inside
_ALWAYS_READ = ("input", "loop", "parallel")  # names of references that need no block
_current: ContextVar[Trace | None] = ContextVar("weft_trace", default=None)


def current(called: str) -> Trace:
    """Raises DefinitionError: no workflow function is being traced."""
    trace = _current.get()
    if trace is None:
        raise DefinitionError(f"weft.{called} is part of a workflow: call it in a function with @weft.workflow.")
    return trace


def active() -> Trace | None:
    return _current.get()


def refuse_drawn(called: str) -> None:
    """Raises DefinitionError: a workflow function is being traced, and no block does what this does."""
    if active() is not None:
        raise DefinitionError(f"weft.{called} cannot be drawn. Decide inside a step, {DURABLE}.")


class Call:
    """A call in a workflow function: awaited, it records what it stands for, and gives the placeholder of its value."""

    __slots__ = ("_coroutine", "_trace", "defined", "name")

    def __init__(self, trace: Trace, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self._trace = trace
        self._coroutine = coroutine
        self.defined = user_place()
        trace.calls[id(self)] = self

    def __await__(self) -> Generator[Any, Any, Any]:
        self._trace.calls.pop(id(self), None)
        return (yield from self._coroutine.__await__())

    @property
    def _asyncio_future_blocking(self) -> NoReturn:
        """Refuse `asyncio.gather` and others before they make a task of it: this is the first that they ask for."""
        raise DefinitionError(_AWAITS)

    def refuse(self) -> NoReturn:
        """It was used or left without `await`."""
        hint = f"Write `await {self.name}(…)`, or await it with others in weft.gather."
        raise DefinitionError(f"{self.name} is called without `await`. {hint}", self.defined)

    def close(self) -> None:
        self._coroutine.close()


def recorded(function: Callable[P, Coroutine[Any, Any, Any]]) -> Callable[P, Any]:
    """Make calls of a function `weft.NAME` those of workflow functions."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return Call(current(function.__name__), f"weft.{function.__name__}", function(*args, **kwargs))

    return call


class Trace:
    """A trace. `scope` is the place of the next block."""

    def __init__(self) -> None:
        self.root = Scope((START, OUT))
        self.scope = self.root
        self.calls: dict[int, Call] = {}  # those that are not awaited yet
        self.steps: dict[str, Any] = {}  # each Step by name
        self.workflows: dict[str, Any] = {}  # each FunctionWorkflow by name, None if only the name is known
        self.sources = Sources()
        self.start = Node(self.root, START, Start())
        self._edges = Edges()
        self._nodes = {normalize(START): self.start}
        self._refs: dict[tuple[str, ...], tuple[str, int]] = {}
        self._numbers: dict[str, int] = {}
        self._written: set[str] = set()  # references that were made by f-strings

    @contextmanager
    def recording(self) -> Generator[None]:
        """At the end, raises the first DefinitionError, also if the workflow function caught it, and refuses a call
        that was not awaited."""
        errors: list[DefinitionError] = []
        tokens = _current.set(self), raised.set(errors), written.set(self._written)
        try:
            yield
        except Exception as error:
            if errors and errors[0] is not error:
                raise errors[0] from error
            for call in () if errors else self.calls.values():
                call.refuse()
            raise
        finally:
            _current.reset(tokens[0])
            raised.reset(tokens[1])
            written.reset(tokens[2])
            for call in self.calls.values():
                call.close()
        if errors:
            raise errors[0]
        for call in self.calls.values():
            call.refuse()

    @contextmanager
    def inside(self, scope: Scope) -> Generator[Scope]:
        before, self.scope = self.scope, scope
        try:
            yield scope
        finally:
            self.scope = before

    def use(self, step: Any) -> None:
        """Note a Step that the workflow calls. Raises DefinitionError: another function has its name."""
        if self.steps.setdefault(step.name, step).function is not step.function:
            raise DefinitionError(f"two functions have the name {step.name!r}: give one of them another name=.")

    def add(
        self, name: str, block: Block, *, id: str | None = None, reads: Iterable[Traced] = (), is_plain: bool = False
    ) -> Node:
        """Add a block to the current scope, after what is there. Its params may hold traced values, unless it
        `is_plain`, with references as text, of which `reads` are those to check. Raises DefinitionError."""
        self.sources.refuse_try()
        if not self.scope.exits:
            raise DefinitionError("no call can follow weft.continue_as_new: the run ends there.")
        node = Node(self.scope, self._free_id(name, id), block)
        if not is_plain:
            block.params = self.plain(block.params, node)
        for value in reads:
            self._reads(node, value)
        self._edges.lead_to(node)
        self.scope.nodes.append(node)
        self._nodes[normalize(node.id)] = node
        if len(self._nodes) > BLOCKS_MAX:
            hint = "Repeat work with weft.each, which is one block for any number of items."
            raise DefinitionError(f"the workflow has more than {BLOCKS_MAX:,} blocks. {hint}")
        return node

    def record(
        self,
        name: str,
        block: Block,
        id: str | None = None,
        *,
        called: str | None = None,
        path: tuple[str, ...] = (),
        schema: Mapping[str, Any] | None = None,
        of: type[Traced] = Traced,
    ) -> Any:
        """Return the call that adds this block. Its value is a part of the output, at `path`."""

        async def add() -> Traced:
            node = self.add(name, block, id=id)
            return of(node, node.scope, path, schema)

        return Call(self, called or f"weft.{name}", add())

    async def side_by_side(self, calls: Iterable[Awaitable[Any]]) -> list[Any]:
        """Await calls that begin at the same place; what comes next follows all of them."""
        scope, begin = self.scope, self.scope.exits
        values, ends = [], []
        for call in calls:
            scope.exits = begin
            values.append(await call)
            ends.append(scope.exits)
        scope.follow([exits for exits in ends if exits is not begin] or [begin])
        return values

    def plain(self, value: Any, node: Node) -> Any:
        """JSON values for the params of `node`, with traced values as references; `node` waits for them."""

        def hook(inner: Any) -> Any:
            if isinstance(inner, Traced):
                self._reads(node, inner)
                return reference(inner)
            if isinstance(inner, Call):
                inner.refuse()
            if isinstance(inner, Condition):
                raise DefinitionError(
                    "a comparison of traced values is a condition: use it in weft.when, or compare in a step."
                )
            try:
                return write(inner)
            except Unfit as error:
                raise DefinitionError(f"the arguments hold {error.message}.") from None

        try:
            made = msgspec.to_builtins(value, enc_hook=hook, str_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise DefinitionError(f"the arguments cannot be written as JSON: {error}.") from None
        self._texts(value, node)
        return made

    def document(self) -> dict[str, Any]:
        nodes = self._left_over()
        self._check_names(nodes)
        blocks = {node.id: node.block.block(node.id, node.scope.container) for node in nodes}
        return {"blocks": blocks, "edges": [edge(*one) for one in self._edges.all]}

    def nodes_in(self, scope: Scope) -> list[Node]:
        return [node for node in self._nodes.values() if scope.holds(node.scope)]

    def end_with(self, value: Any, called: str) -> dict[str, Any]:
        """Make `value` the output of the last block of the current scope. Returns its schema."""
        if value is None and not self.scope.exits:
            return {}
        if value is None and not self.scope.exits:
            return {}
        schema = (value._schema if isinstance(value, Traced) else None) or {}
        if isinstance(value, Traced) and not value._path and self.scope.exits == [(value._node.id, OUT)]:
            value._node.needed = True
        else:
            self.add(called, Set(value))
        return schema

    def _reads(self, node: Node, value: Traced) -> None:
        """Raises DefinitionError: the value does not exist there."""
        if not value._scope.holds(node.scope):
            hint = "Return it from the function and use what weft.when, weft.each or weft.attempt returns."
            if self._cleanup(value._scope, node.scope) is not None:
                call = value._node.id
                hint = f"A cleanup gets its calls as an argument: `lambda done: ...` reads done[{call!r}]."
            raise DefinitionError(f"{reference(value)} exists only in a branch or body that ends before this. {hint}")
        self._refs.setdefault((value._node.id, *(p for p in value._path if isinstance(p, str))), user_place())
        node.reads.append(value._node)

    def _texts(self, value: Any, node: Node) -> None:
        """References in texts: what f-strings of traced values leave."""
        stack = [value]
        while stack:
            one = stack.pop()
            if isinstance(one, dict):
                stack.extend(one.values())
            elif isinstance(one, list | tuple):
                stack.extend(one)
            elif isinstance(one, str) and "<" in one:
                for found in find(one):
                    if not found.env:
                        self._reads_text(found.text, one, node)

    def _reads_text(self, text: str, whole: str, node: Node) -> None:
        parsed = parse(text)
        first = normalize(str(parsed.segments[0])) if parsed is not None else ""
        source = self._nodes.get(first)
        if parsed is None or (source is None and first not in _ALWAYS_READ):
            return
        if source is None or f"<{text}>" not in self._written:
            raise DefinitionError(
                f"<{text[:80]}> in a text is read as a reference when a run executes the workflow. Write the traced "
                'value in an f-string, f"use {value}"; a text that holds such words comes from a step.'
            )
        path = parsed.segments[1:]
        inner = source.body is not None and bool(path) and path[0] in _BODY and source.body.holds(node.scope)
        scope = source.body if inner and source.body is not None else source.scope
        if whole == f"<{text}>":
            raise DefinitionError(
                f"a text of one traced value alone would not be a text: pass {whole} itself, without f-string."
            )
        if not scope.holds(node.scope) and (cleanup := self._cleanup(scope, node.scope)) is not None and "??" in text:
            scope = cleanup
        self._reads(node, Traced(source, scope, path))

    def _free_id(self, name: str, wanted: str | None) -> str:
        """Return `fetch`, then `fetch-2`: stable as long as the calls of one name keep their order."""
        if wanted is not None:
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", wanted) or normalize(wanted) in RESERVED:
                raise DefinitionError(f"{wanted!r} cannot be an id: use letters, digits, _ and -.")
            if normalize(wanted) in self._nodes:
                raise DefinitionError(f"two calls have the id {wanted!r}.")
            return wanted
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:100].strip("_") or "step"
        if normalize(name) in (*RESERVED, START):
            name = f"{name}-step"
        number = self._numbers.get(name, 1)
        free = name if number == 1 else f"{name}-{number}"
        while normalize(free) in self._nodes:
            number += 1
            free = f"{name}-{number}"
        self._numbers[name] = number  # lower numbers stay taken
        return free

    def _left_over(self) -> list[Node]:
        """Return the nodes without those that only prepare a value which nothing reads."""
        nodes = list(self._nodes.values())
        while True:
            read = {id(one) for node in nodes for one in node.reads}
            unread = next((node for node in nodes if not node.needed and id(node) not in read), None)
            if unread is None:
                return nodes
            nodes.remove(unread)
            self._edges.leave_out(unread)

    def _cleanup(self, scope: Scope, reader: Scope) -> Scope | None:
        """Return the innermost cleanup around `reader` of a container that holds `scope`."""
        for node in reversed(self._nodes.values()):
            cleanup, body = node.cleanup, node.body
            if cleanup is not None and body is not None and cleanup.holds(reader) and body.holds(scope):
                return cleanup
        return None

    def _check_names(self, nodes: list[Node]) -> None:
        """`<fetch.title>` must not be read as the block `fetchtitle`: dots do not count in names."""
        names = {normalize(node.id): node.id for node in nodes}
        for parts, place in self._refs.items():
            for length in range(2, len(parts) + 1):
                other = names.get(normalize(".".join(parts[:length])))
                if other is not None:
                    shown = ".".join(parts[:length])
                    raise DefinitionError(
                        f"<{shown}> would read the block {other!r}: give that call another id.", place
                    )


def finished(function: Callable[..., Any], coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run the function, which may await only steps, and return its result. Raises DefinitionError."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if "event loop" not in str(error):
            raise
        raise DefinitionError(_AWAITS, _line_in(function, error.__traceback__)) from None
    place = _suspended_at(coroutine)
    coroutine.close()
    raise DefinitionError(_AWAITS, place)


async def settled(value: Any) -> Any:
    """Return what a function of a user returned, a coroutine or a value."""
    return await value if isinstance(value, Call) or inspect.iscoroutine(value) else value


def _suspended_at(coroutine: Any) -> tuple[str, int] | None:
    """Return the innermost line of a user at which it waits."""
    place = None
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and is_of_user(frame.f_code):
            place = (frame.f_code.co_filename, frame.f_lineno)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return place


def _line_in(function: Callable[..., Any], trace: TracebackType | None) -> tuple[str, int] | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = None
    while code is not None and trace is not None:
        file = code.co_filename
        if trace.tb_frame.f_code.co_filename == file:
            place = (file, trace.tb_lineno)
        trace = trace.tb_next
    return place
