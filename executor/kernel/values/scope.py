"""All payloads of one run, by where they were made: the outputs of each open scope, the rounds of each container,
variables.

The core decides what runs and never sees a payload; this is the other half. Outputs stay encoded until one is read.
What cannot be read any more is dropped as soon as its scope closes, so a loop holds its running iteration, the one
before it, and the results. Every call is O(1) in the size of the run (and O(depth) in the nesting, at most 10). The
compiler decides which reference reads what (`compiler.plan.Ref`); `lookup` only walks there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from compiler.keys import NodeKey, Path
from compiler.plan import Plan, Ref
from compiler.references import normalize
from executor.errors import BlockError
from executor.kernel.values import variables as paths
from executor.kernel.values.payload import MISSING, copy, trimmed


class Cell(Struct, gc=False):
    """An output. `own_brief`: None, if it is `data`. `ends`: False, if the node left by a handle with an edge. The
    garbage collector need not look at the thousands that a run holds."""

    data: bytes
    own_brief: bytes | None = None
    ends: bool = True
    _value: Any = MISSING

    @property
    def brief(self) -> bytes:
        """Return what a surrounding container collects of the output: of a container only its results."""
        return self.data if self.own_brief is None else self.own_brief

    @property
    def value(self) -> Any:
        if self._value is MISSING:
            self._value = orjson.loads(self.data)
        return self._value


class ScopeCells:
    """One iteration or branch (or the root): outputs by node number, containers by the region of their body."""

    __slots__ = ("cells", "containers")

    def __init__(self) -> None:
        self.cells: dict[int, Cell] = {}
        self.containers: dict[int, ContainerCells] = {}


class ContainerCells:
    """A loop or parallel that has started. `done` counts its closed scopes, `results` holds the JSON of each by index.

    last      loops: the newest closed iteration; it is the previous one of the iteration now running
    retained  closed branches that a later iteration of an outer loop may still read
    broken    index of the iteration in which a break block ran, or -1
    outcome   a cleanup: how what it cleans up for has ended
    """

    __slots__ = (
        "_items",
        "broken",
        "count",
        "decoded",
        "done",
        "items_data",
        "last",
        "last_index",
        "open",
        "outcome",
        "results",
        "retained",
    )

    def __init__(self, count: int, items: bytes | None) -> None:
        self.count = count
        self.items_data = items
        self._items: list[Any] | None = None
        self.open: dict[int, ScopeCells] = {}
        self.retained: dict[int, ScopeCells] = {}
        self.last: ScopeCells | None = None
        self.last_index = -1
        self.results: dict[int, bytes] = {}
        self.decoded: list[Any] = []
        self.done = 0
        self.broken = -1
        self.outcome = ""

    @property
    def items(self) -> Any:
        if self._items is None:
            if self.items_data is None:
                return MISSING
            self._items = orjson.loads(self.items_data)
        return self._items

    def scope(self, index: int) -> ScopeCells | None:
        if self.last is not None and index == self.last_index:
            return self.last
        return self.open.get(index) or self.retained.get(index)

    def newest(self) -> int:
        return max(self.open, default=self.last_index)

    def release(self) -> None:
        self.open.clear()
        self.results.clear()
        self.decoded = []
        self.items_data = self._items = None

    def results_so_far(self) -> list[Any]:
        for index in range(len(self.decoded), self.done):
            self.decoded.append(orjson.loads(self.results.get(index, b"null")))
        return self.decoded


def held_bytes(scope: ScopeCells) -> int:
    total = sum(len(cell.data) for cell in scope.cells.values())
    for container in scope.containers.values():
        total += sum(map(len, container.results.values())) + len(container.items_data or b"")
        scopes = [*container.open.values(), *container.retained.values(), *([container.last] if container.last else [])]
        total += sum(map(held_bytes, scopes))
    return total


class _Results(msgspec.Struct):
    results: msgspec.Raw


class Values:
    """The values of one run. What `lookup` returns for blocks and items is shared: copy before changing
    (`payload.copy`)."""

    def __init__(self, plan: Plan, input: Any, env: Mapping[str, str]) -> None:
        self.plan = plan
        self.input = input
        self.env = env
        self.variables: dict[str, Any] = copy(plan.variables)
        self.root = ScopeCells()
        self._wired_handles = plan.wired_handles

    # what happened

    def succeeded(self, key: NodeKey, output: bytes, route: str | None = "out") -> None:
        """Record an output (JSON). A break block marks its loop."""
        path, node = key
        self._open(path).cells[node] = Cell(output, ends=self.ends(node, route))
        if self.plan.nodes[node].type == "break":
            self.break_at(path)

    def passed(self, key: NodeKey) -> None:
        self._record_output(key, b"null", "out")

    def failed(self, key: NodeKey, error: Mapping[str, Any]) -> None:
        """Set the output to {"error": error}, for the blocks after the error handle."""
        self._record_output(key, trimmed(orjson.dumps({"error": error})), "error")

    def ends(self, node: int, route: str | None) -> bool:
        """Returns True if a node that leaves by this handle may count among the ends of its region."""
        return route not in self._wired_handles.get(node, ())

    def sized(self, start_key: NodeKey, count: int, items: bytes | None) -> None:
        """A start sentinel is done. `items`: the JSON list that `<loop.item>` reads, when it runs over a collection."""
        path, node = start_key
        self._open(path).containers[self.plan.nodes[node].body] = ContainerCells(count, items)

    def cleanup_opened(self, key: NodeKey, region: int, outcome: str) -> None:
        """The cleanup of the container with this end sentinel begins. `outcome`: how the container has ended."""
        container = self._open(key[0]).containers[region] = ContainerCells(1, None)
        container.outcome = outcome

    def patch(self, ops: Sequence[Sequence[Any]]) -> None:
        paths.apply(self.variables, ops)

    def break_at(self, path: Path) -> None:
        """Let the innermost loop of `path`, if there is one, end with this iteration."""
        found = self._loop_of(path)
        if found is not None:
            container, index = found
            container.broken = index

    def broke(self, path: Path) -> bool:
        """Did a break block run in the innermost loop scope of `path`? Give the scope that ended, not its sentinel's
        path."""
        found = self._loop_of(path)
        return found is not None and found[0].broken == found[1]

    def scope_closed(self, path: Path, error: Mapping[str, Any] | None = None) -> None:
        """Collect the result of an iteration or branch, and let go of its outputs. The second time does nothing.
        `error`: a failure that on_branch_error turns into the result."""
        region_index, index = path[-1]
        region = self.plan.regions[region_index]
        parent = self._open(path[:-1])
        container = parent.containers.get(region_index)
        if container is None:
            container = parent.containers[region_index] = ContainerCells(index + 1, None)
        if index in container.results or index <= container.last_index:
            return
        scope = container.open.pop(index, None) or ScopeCells()
        if error is None:
            container.results[index] = self._result(region_index, scope)
        else:
            collected = region.on_branch_error == "collect"
            container.results[index] = trimmed(orjson.dumps({"error": error})) if collected else b"null"
        if region.kind == "loop":
            container.last, container.last_index = scope, index
            container.done = index + 1
        else:
            container.done += 1
            if region_index in self.plan.retained:
                container.retained[index] = scope

    def _result(self, region: int, scope: ScopeCells) -> bytes:
        ran = (scope.cells.get(node) for node in self.plan.regions[region].all_ends)
        outputs = [cell.brief for cell in ran if cell is not None and cell.ends]
        if self.plan.regions[region].single and len(outputs) < 2:
            return outputs[0] if outputs else b"null"
        return b"[" + b",".join(outputs) + b"]"

    def exit(self, end_key: NodeKey) -> bytes:
        """Record and return the output of a container that is done: {"results": [...]} in order, loops also "last":
        {block name: output} of the last iteration."""
        path, node = end_key
        region = self.plan.regions[self.plan.nodes[node].body]
        container = self._open(path).containers.get(self.plan.nodes[node].body)
        results: list[bytes] = []
        if container is not None:
            rounds = container.done if region.kind == "loop" else container.count
            results = [container.results.get(index, b"null") for index in range(rounds)]
        brief = b'{"results":[' + b",".join(results) + b"]}"
        output = brief
        if region.kind == "loop":
            output = brief[:-1] + b',"last":' + self._last_outputs(container, region.first, len(region.nodes)) + b"}"
        self._exit(end_key, Cell(output, brief))
        return output

    def exited(self, end_key: NodeKey, output: bytes) -> None:
        """Record the output of a container as the journal has it."""
        try:
            results = bytes(msgspec.json.decode(output, type=_Results).results)
        except msgspec.ValidationError:  # passed over, or failed: null, or an error
            self._exit(end_key, Cell(output))
        else:
            self._exit(end_key, Cell(output, b'{"results":' + results + b"}"))

    # what can be read

    def lookup(self, ref: Ref, path: Path) -> Any:
        """Return the value of `ref` in scope `path`, its default if that would be null, or MISSING. Raises
        BlockError(reference_failed) for an unknown field of a strict reference."""
        match ref.kind:
            case "block":
                value = self._block(ref, path)
            case "scope":
                value = self._scope_field(ref, path)
            case "variable":
                value = copy(paths.read(self._variable(ref.path[0]), ref.path[1:]))
            case "input":
                value = paths.read(self.input, ref.path)
            case "env":
                value = self.env.get(str(ref.path[0]), MISSING)
        if ref.default is not None and (value is MISSING or value is None):
            return orjson.loads(ref.default)
        return value

    def size(self, path: Path, region: int) -> int:
        """Return how many rounds the start sentinel in scope `path` set for its body `region`; 0 before that."""
        scope = self._find(path)
        container = scope.containers.get(region) if scope is not None else None
        return container.count if container is not None else 0

    def run_output(self, ran: Collection[int]) -> Any:
        """Return the output of the single end block among the nodes that ran, else an object by block name."""
        cells = [(n, self.root.cells[n]) for n in self.plan.regions[0].all_ends if n in ran and n in self.root.cells]
        if len(cells) == 1:
            return orjson.loads(cells[0][1].data)
        output: dict[str, Any] = {}
        for number, cell in cells:
            node = self.plan.nodes[number]
            output[node.block if node.name in output else node.name] = orjson.loads(cell.data)
        return output

    def held_bytes(self) -> int:
        """Return the bytes of the outputs that can still be read. Takes time with their number."""
        return held_bytes(self.root)

    # references

    def _block(self, ref: Ref, path: Path) -> Any:
        """Return a field of an output. It is MISSING of a block that did not run, and below null. `output` may stand
        between the block and its fields."""
        cell = self._cell(ref, path)
        if cell is None:
            return MISSING
        value = cell.value
        fields = ref.path
        if fields and fields[0] == "output" and not (isinstance(value, dict) and "output" in value):
            fields = fields[1:]
        found = paths.read(value, fields)
        if found is MISSING and ref.strict and ref.default is None and value is not None:
            raise _unknown_field(ref, value, fields)
        return found

    def _cell(self, ref: Ref, path: Path) -> Cell | None:
        chain = self.plan.chains[self.plan.region_of[ref.node]]
        scope: ScopeCells | None = self.root
        inside = True
        for depth, region in enumerate(chain):
            container = scope.containers.get(region) if scope is not None else None
            if container is None:
                return None
            inside = inside and depth < len(path) and path[depth][0] == region
            if not inside:  # seen from outside: the newest iteration (the branches of a parallel are not to be seen)
                scope = container.scope(container.newest()) if self.plan.regions[region].kind != "parallel" else None
                continue
            index = path[depth][1]
            if ref.mode == "previous" and region == ref.region:
                index -= 1
            scope = container.scope(index)
        return scope.cells.get(ref.node) if scope is not None else None

    def _scope_field(self, ref: Ref, path: Path) -> Any:
        depth = len(self.plan.chains[ref.region]) - 1
        inside = len(path) > depth and path[depth][0] == ref.region
        scope = self._find(path[:depth])
        container = scope.containers.get(ref.region) if scope is not None else None
        # From outside only a loop's own test reads these; it stands before the next iteration.
        index = path[depth][1] if inside else container.newest() + 1 if container is not None else 0
        is_loop = self.plan.regions[ref.region].kind == "loop"
        value: Any = MISSING
        match ref.path[0]:
            case "index" | "iteration":
                value = index
            case "item" if container is not None:
                items = container.items
                value = items[index] if items is not MISSING and index < len(items) else MISSING
            case "items" if container is not None:
                value = container.items
            case "results" if is_loop and container is not None:
                value = container.results_so_far()
                over = [open for open in container.open if container.done <= open < index]
                if over:  # a reader changes nothing: they are closed by its event
                    results = (self._result(ref.region, container.open[open]) for open in over)
                    value = [*value, *map(orjson.loads, results)]
            case "results" if is_loop:
                value = []
            case "outcome" if container is not None:
                value = container.outcome
            case "break":
                value = container is not None and container.broken == index
        return paths.read(value, ref.path[1:])

    def _variable(self, name: str | int) -> Any:
        if name in self.variables:
            return self.variables[str(name)]
        wanted = normalize(str(name))
        if not wanted:
            return MISSING
        return next((value for key, value in self.variables.items() if normalize(key) == wanted), MISSING)

    # scopes

    def _find(self, path: Path) -> ScopeCells | None:
        scope: ScopeCells | None = self.root
        for region, index in path:
            container = scope.containers.get(region) if scope is not None else None
            scope = container.scope(index) if container is not None else None
        return scope

    def _open(self, path: Path) -> ScopeCells:
        scope = self.root
        for region, index in path:
            container = scope.containers.get(region)
            if container is None:
                container = scope.containers[region] = ContainerCells(index + 1, None)
            inner = container.scope(index)
            if inner is None:
                inner = container.open[index] = ScopeCells()
            scope = inner
        return scope

    def _loop_of(self, path: Path) -> tuple[ContainerCells, int] | None:
        for depth in range(len(path) - 1, -1, -1):
            region, index = path[depth]
            if self.plan.regions[region].kind == "loop":
                scope = self._open(path[:depth])
                container = scope.containers.get(region)
                if container is None:
                    container = scope.containers[region] = ContainerCells(index + 1, None)
                return container, index
        return None

    def _record_output(self, key: NodeKey, output: bytes, route: str) -> None:
        """Record what stands for an output. References name a container by its end sentinel, even when its start
        failed."""
        path, number = key
        node = self.plan.nodes[number]
        if node.sentinel == "start":
            number = self.plan.regions[node.body].end
        self._open(path).cells[number] = Cell(output, ends=self.ends(number, route))

    def _exit(self, end_key: NodeKey, cell: Cell) -> None:
        path, node = end_key
        scope = self._open(path)
        scope.cells[node] = cell
        container = scope.containers.get(self.plan.nodes[node].body)
        if container is not None:  # only the last iteration can be read from outside, the results are in the output
            container.release()

    def _last_outputs(self, container: ContainerCells | None, first: int, size: int) -> bytes:
        """Return the outputs of the last iteration by block name, or by id where a name is used twice."""
        if container is None or container.last is None:
            return b"{}"
        outputs: dict[str, bytes] = {}
        for number in range(first, first + size):
            node = self.plan.nodes[number]
            cell = container.last.cells.get(number)
            if cell is not None and node.sentinel != "start":
                outputs[node.block if node.name in outputs else node.name] = cell.data
        return b"{" + b",".join(orjson.dumps(name) + b":" + data for name, data in outputs.items()) + b"}"


def _unknown_field(ref: Ref, value: Any, fields: Sequence[str | int]) -> BlockError:
    holder = value
    missing: str | int = ""
    for field in fields:
        missing = field
        inner = paths.read(holder, (field,))
        if inner is MISSING:
            break
        holder = inner
    name = ref.text.split("??")[0].split(".")[0].split("[")[0].strip()
    known = ", ".join(holder) if isinstance(holder, dict) and holder else "none"
    return BlockError(
        f'"{missing}" doesn\'t exist on block "{name}". Available fields: {known}',
        code="reference_failed",
        retryable=False,
        hint=f"<{ref.text}> cannot be read; add a default with ?? if the field may be missing.",
    )
