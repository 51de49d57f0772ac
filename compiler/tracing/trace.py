"""One trace of a workflow function: the blocks that its calls record, and the document they make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

import msgspec

from compiler.bind import RESERVED
from compiler.builder.blocks import Start
from compiler.builder.errors import TraceError, raised, user_place
from compiler.builder.step import Block
from compiler.document import BLOCKS_MAX
from compiler.references import find, normalize, parse
from compiler.signature import Unfit, write
from compiler.tracing.graph import Item, Junction, Node, Scope, edges_of, nodes_of
from compiler.tracing.source import Sources
from compiler.tracing.values import Condition, Traced, reference, written
from compiler.wiring import OUT

START: Final = "start"
_AWAITS: Final = "a workflow function awaits only steps and what weft offers. Await other things inside a step."
_BODY = ("item", "index", "items", "iteration")  # what a container has inside
_ALWAYS_READ = ("input", "loop", "parallel")  # names of references that need no block
_current: ContextVar[Trace | None] = ContextVar("weft_trace", default=None)


def current(called: str) -> Trace:
    """Raises TraceError: no workflow function is being traced."""
    trace = _current.get()
    if trace is None:
        raise TraceError(f"weft.{called} is part of a workflow: call it in a function with @weft.workflow.")
    return trace


def active() -> Trace | None:
    return _current.get()


class Trace:
    """A trace. `scope` is the place of the next block."""

    def __init__(self) -> None:
        self.root = Scope((START, OUT))
        self.scope = self.root
        self.steps: dict[str, Any] = {}  # each Step by name
        self.workflows: dict[str, Any] = {}  # each FunctionWorkflow by name, None if only the name is known
        self.sources = Sources()
        self.start = Node(self.root, START, Start())  # in no list: its edges are the entry of the root
        self._nodes = {normalize(START): self.start}
        self._refs: dict[tuple[str, ...], tuple[str, int]] = {}
        self._numbers: dict[str, int] = {}
        self._written: set[str] = set()  # references that were made by f-strings

    @contextmanager
    def recording(self) -> Generator[None]:
        """At the end, raises the first TraceError, also if the workflow function caught it."""
        errors: list[TraceError] = []
        tokens = _current.set(self), raised.set(errors), written.set(self._written)
        try:
            yield
        except Exception as error:
            if errors and errors[0] is not error:
                raise errors[0] from error
            raise
        finally:
            _current.reset(tokens[0])
            raised.reset(tokens[1])
            written.reset(tokens[2])
        if errors:
            raise errors[0]

    @contextmanager
    def inside(self, scope: Scope) -> Generator[Scope]:
        before, self.scope = self.scope, scope
        try:
            yield scope
        finally:
            self.scope = before

    def use(self, step: Any) -> None:
        """Note a Step that the workflow calls. Raises TraceError: another function has its name."""
        if self.steps.setdefault(step.name, step).function is not step.function:
            raise TraceError(f"two functions have the name {step.name!r}: give one of them another name=.")

    def add(
        self,
        name: str,
        block: Block,
        *,
        id: str | None = None,
        after: Iterable[Any] = (),
        items: Sequence[Item] = (),
        reads: Iterable[Any] = (),
        is_plain: bool = False,
        barrier: bool = False,
    ) -> Node:
        """Add a block to the current scope. Its params may hold traced values, unless it `is_plain`, with references as
        text, of which `reads` are those that it waits for. `after`: traced values that it waits for, `items`: the same
        of the scope itself; `barrier`: it waits for all before it, and all after it wait for it. Raises TraceError."""
        self.sources.refuse_try()
        node = Node(self.scope, self._free_id(name, id), block)
        if not is_plain:
            block.params = self.plain(block.params, node)
        for value in (*after, *reads):
            if not isinstance(value, Traced):
                raise TraceError(f"`after` takes what earlier calls returned, not {value!r}.")
            self._reads(node, value)
        node.wait_for(items)
        self._place(node, barrier)
        self._nodes[normalize(node.id)] = node
        if len(self._nodes) > BLOCKS_MAX:
            hint = "Repeat work with weft.each, which is one block for any number of items."
            raise TraceError(f"the workflow has more than {BLOCKS_MAX:,} blocks. {hint}")
        return node

    def join(self, junction: Junction) -> None:
        self._place(junction, False)

    def plain(self, value: Any, node: Node) -> Any:
        """JSON values for the params of `node`, with traced values as references; `node` waits for them."""

        def hook(inner: Any) -> Any:
            if isinstance(inner, Traced):
                self._reads(node, inner)
                return reference(inner)
            if isinstance(inner, Condition):
                raise TraceError(
                    "a comparison of traced values is a condition: use it in weft.when, or compare in a step."
                )
            try:
                return write(inner)
            except Unfit as error:
                raise TraceError(f"the arguments hold {error.message}.") from None

        try:
            made = msgspec.to_builtins(value, enc_hook=hook, str_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise TraceError(f"the arguments cannot be written as JSON: {error}.") from None
        self._texts(value, node)
        return made

    def document(self) -> dict[str, Any]:
        nodes = self._left_out(nodes_of(self.root))
        self._check_names(nodes)
        return {"blocks": {node.id: node.document() for node in (self.start, *nodes)}, "edges": edges_of(self.root)}

    def _place(self, item: Item, barrier: bool) -> None:
        scope = item.scope
        if isinstance(scope.barrier, Node) and scope.barrier.ends:
            raise TraceError("no call can follow weft.continue_as_new: the run ends there.")
        if barrier or scope.ordered:
            item.wait_for(scope.last())
        if scope.barrier is not None:
            item.wait_for([scope.barrier])
        scope.items.append(item)
        if barrier or scope.ordered:
            scope.barrier = item

    def _reads(self, node: Node, value: Traced) -> None:
        """`node`, or the owner of the scope around it, waits for the block of `value`. Raises TraceError: it has no
        value there."""
        if not value._scope.holds(node.scope):
            hint = "Return it from the function and use what weft.when, weft.each or weft.attempt returns."
            if _cleans(value._scope, node.scope) is not None:
                call = value._node.id
                hint = f"A cleanup gets its calls as an argument: `lambda done: ...` reads done[{call!r}]."
            raise TraceError(f"{reference(value)} exists only in a branch or body that ends before this. {hint}")
        self._refs.setdefault((value._node.id, *(p for p in value._path if isinstance(p, str))), user_place())
        source, waiting = value._node, node
        if value._scope is not source.scope or source is self.start:
            return  # an item of the body around, or the error of the block before, or the input
        while waiting.scope is not source.scope:
            assert waiting.scope.owner is not None
            waiting = waiting.scope.owner
        waiting.wait_for([source])

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
            raise TraceError(
                f"<{text[:80]}> in a text is read as a reference when a run executes the workflow. Write the traced "
                'value in an f-string, f"use {value}"; a text that holds such words comes from a step.'
            )
        path = parsed.segments[1:]
        inner = source.body is not None and bool(path) and path[0] in _BODY and source.body.holds(node.scope)
        scope = source.body if inner and source.body is not None else source.scope
        if whole == f"<{text}>":
            raise TraceError(
                f"a text of one traced value alone would not be a text: pass {whole} itself, without f-string."
            )
        if not scope.holds(node.scope) and (cleanup := _cleans(scope, node.scope)) is not None and "??" in text:
            scope = cleanup
        self._reads(node, Traced(source, scope, path))

    def _free_id(self, name: str, wanted: str | None) -> str:
        """Return `fetch`, then `fetch-2`: stable as long as the calls of one name keep their order."""
        if wanted is not None:
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", wanted) or normalize(wanted) in RESERVED:
                raise TraceError(f"{wanted!r} cannot be an id: use letters, digits, _ and -.")
            if normalize(wanted) in self._nodes:
                raise TraceError(f"two calls have the id {wanted!r}.")
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

    def _left_out(self, nodes: list[Node]) -> list[Node]:
        """Return the nodes without those that only prepare a value which nothing reads."""
        read = {id(one) for node in nodes for item in node.scope.items for one in item.after}
        gone = [node for node in nodes if not node.needed and id(node) not in read]
        for node in gone:
            node.scope.items.remove(node)
        return self._left_out([node for node in nodes if node not in gone]) if gone else nodes

    def _check_names(self, nodes: list[Node]) -> None:
        """`<fetch.title>` must not be read as the block `fetchtitle`: dots do not count in names."""
        names = {normalize(node.id): node.id for node in nodes}
        for parts, place in self._refs.items():
            for length in range(2, len(parts) + 1):
                other = names.get(normalize(".".join(parts[:length])))
                if other is not None:
                    shown = ".".join(parts[:length])
                    raise TraceError(f"<{shown}> would read the block {other!r}: give that call another id.", place)


def _cleans(scope: Scope, reader: Scope) -> Scope | None:
    """Return the innermost cleanup between `reader` and the container of `scope`."""
    at: Scope | None = reader
    while at is not None:
        owner = at.owner
        if owner is not None and owner.cleanup is at and owner.body is not None and owner.body.holds(scope):
            return at
        at = at.parent
    return None


def finished(function: Callable[..., Any], returned: Any) -> Any:
    """Return the result of the function. An async one is run, and may await only steps. Raises TraceError."""
    if not inspect.iscoroutine(returned):
        return returned
    try:
        returned.send(None)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if str(error) != "no running event loop":
            raise
        raise TraceError(_AWAITS, _line_in(function, error.__traceback__)) from None
    returned.close()
    raise TraceError(_AWAITS)


def _line_in(function: Callable[..., Any], trace: TracebackType | None) -> tuple[str, int] | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = None
    while code is not None and trace is not None:
        file = code.co_filename
        if trace.tb_frame.f_code.co_filename == file:
            place = (file, trace.tb_lineno)
        trace = trace.tb_next
    return place
