"""Lists of items -> regions of a workflow. In n8n each node gets a list of items and runs once for each of them; a
block has one value.

A node that makes one item is one block. A node that may make several is followed by a `parallel` over its items, with
the nodes that run for each of them inside, so that their references are plain paths. A node that looks at all items
at once (Merge, Aggregate, Code) stands after that parallel and reads the list of its results. Loop Over Items is a
`loop`, and so is any other cycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from compiler.imports.n8n_text import Item, free, prelude, slug
from compiler.references import find

_PRESENT: Final = ".filter((one) => one !== null)"
_STRICT: Final = ("connector.", "event.", "webhook", "agent", "http")
# The fields that the output of these always has. Any other field may be missing, which is null in n8n.
_HAVE: Final = {
    "agent": {"content", "rounds", "tool_calls", "model", "usage", "cost"},
    "webhook": {"body", "headers", "query", "method", "delivery", "received_at"},
}
ITEMS_MAX: Final = 100_000


class Region(Struct, eq=False):
    """The root, or the inside of a container. `frame`: blocks in it see all items (the root, a loop)."""

    block: str
    parent: Region | None = None
    frame: bool = True
    exports: dict[str, str] = field(default_factory=dict)
    given: str = ""

    def chain(self) -> Iterator[Region]:
        at: Region | None = self
        while at is not None:
            yield at
            at = at.parent

    def framed(self) -> Region:
        return next(one for one in self.chain() if one.frame)


class Port(Struct, eq=False):
    """An output of a node: one `item`, or `many`, JavaScript of a list of them. `passed`: its item is that of a block
    before it, so it does not show whether the output was taken. `guard`: branches on which it depends."""

    block: str
    handle: str
    region: Region
    item: Item | None = None
    many: str | None = None
    passed: bool = False
    guard: frozenset[tuple[str, int]] = frozenset()


class Graph:
    """Blocks, regions and edges while they are made."""

    def __init__(self) -> None:
        self.root = Region("")
        self.blocks: dict[str, dict[str, Any]] = {}
        self.edges: list[dict[str, Any]] = []
        self._regions: dict[tuple[str, str], Region] = {}
        self._marks: dict[tuple[str, str], str] = {}
        self.all_regions: list[Region] = []
        self.later: list[Callable[[], None]] = []

    def add(self, name: str, type: str, params: dict[str, Any], region: Region, title: str = "") -> str:
        id = free(name, self.blocks.__contains__, "_")
        block: dict[str, Any] = {"type": type, "name": title or id}
        if region.block:
            block["parent"] = region.block
        if params:
            block["params"] = params
        self.blocks[id] = block
        return id

    def function(self, name: str, js: str, region: Region, title: str = "") -> str:
        return self.add(name, "function", {"code": f"{prelude(js)}{js}"}, region, title)

    def edge(self, source: str, target: str, handle: str = "out") -> None:
        made = {"source": source, "target": target} | ({"handle": handle} if handle != "out" else {})
        if made not in self.edges:
            self.edges.append(made)

    def connect(self, port: Port, block: str, region: Region) -> None:
        """Connect an output with a block in its region or in one around it."""
        mark = self._marks.get((port.block, port.handle))
        if port.region is region:
            if mark is not None and mark != block:
                self.edge(mark, block)
            elif region.block and port.block == region.block:
                self.edge(port.block, block, "body")
            else:
                self.edge(port.block, block, port.handle)
        else:
            inner = next((one for one in port.region.chain() if one.parent is region), None)
            if inner is not None:
                self.edge(inner.block, block)

    # containers

    def each(self, port: Port, title: str) -> Region:
        """Return the region in which nodes run for each item of an output."""
        key = (port.block, port.many or "")
        if (known := self._regions.get(key)) is None:
            listing = self.plain(port, title)
            params = {"mode": "each", "items": listing, "results": "value"}
            block = self.add(f"each_{port.block}"[:100], "parallel", params, port.region, f"Each item of {title}")
            known = self.region(block, port.region, frame=False, given=port.many or "")
            self._regions[key] = self._regions[port.block, port.many or ""] = known
            self.connect(port, block, port.region)
        return known

    def region(self, block: str, parent: Region, *, frame: bool, given: str = "") -> Region:
        made = Region(block, parent, frame, given=given)
        self.all_regions.append(made)
        return made

    def plain(self, port: Port, title: str) -> str:
        """Return a reference to the list; what is no plain reference is computed by a block of its own."""
        many = port.many or ""
        if not (many.startswith("<") and many.endswith(">") and many.count("<") == 1):
            made = self.function(f"{port.block}_items", f"return {many};", port.region, f"Items of {title}")
            self.connect(port, made, port.region)
            port.block, port.handle, port.passed, port.many = made, "out", False, f"<{made}.result>"
        return port.many or ""

    # reading from other regions

    def present(self, port: Port) -> str:
        """Return a reference that is null if the output was not taken."""
        assert port.item is not None, "only an output with one item is present or not"
        ref = port.item.path(())
        if not port.passed and port.handle == "out" and ref is not None and not port.item.fields:
            return f"<{ref} ?? null>"
        key = (port.block, port.handle)
        if key not in self._marks:
            name = f"{port.block}_{slug(port.handle)}" if port.handle != "out" else f"{port.block}_item"
            mark = self.add(name, "set", {"value": port.item.value()}, port.region)
            self.connect(port, mark, port.region)
            self._marks[key] = mark
        return f"<{self._marks[key]} ?? null>"

    def listing(self, port: Port, region: Region, *, sure: bool = False, follows: bool = True) -> str:
        """Return JavaScript of the list of items of an output, for blocks in `region`, which is around it. They are
        connected with the output if they follow it."""
        inner = port.region
        if inner is region:
            if port.item is None:
                return port.many or "[]"
            if not follows and not sure:
                return f"[{port.item.js()}]{_PRESENT}"
            return f"[{port.item.js()}]" if sure else f"[{self.present(port)}]{_PRESENT}"
        many = port.item is None
        kept = self.plain(port, port.block) if port.item is None else self.present(port)
        key = kept.strip("<>").split(" ")[0].split(".")[0].split("[")[0]
        key = free(key, lambda name: inner.exports.get(name, kept) != kept, "_")
        inner.exports[key] = kept
        keys = [key]
        while inner.parent is not None and inner.parent is not region:
            inner.parent.exports[inner.block] = f"<{inner.block}.results>"
            keys.insert(0, inner.block)
            inner = inner.parent
        js = f"(<{inner.block}.results> ?? [])"
        for step in keys[:-1]:
            js += f".flatMap((one) => one?.{step} ?? [])"
        return f"{js}.{'flatMap' if many else 'map'}((one) => one?.{key} ?? {'[]' if many else 'null'})" + (
            "" if many else _PRESENT
        )

    def finish(self) -> None:
        """Make the block at the end of each region that keeps what blocks after it read."""
        for late in self.later:
            late()
        for region in reversed(self.all_regions):
            if region.exports:
                self._collect(region)
        for block in self.blocks.values():
            block |= {"params": self._lenient(block["params"], "")} if "params" in block else {}

    def _lenient(self, value: Any, key: str) -> Any:
        """Give references to fields of services a default: what is missing is null in n8n, and an error here."""
        if isinstance(value, Mapping):
            return {name: self._lenient(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._lenient(inner, key) for inner in value]
        if not isinstance(value, str):
            return value
        parts, at = [], 0
        for found in find(value):
            first, *rest = re.split(r"[.\[]", found.text)
            read = self.blocks.get(first, {})
            type = "" if "save_file" in read.get("params", {}) else read.get("type", "")
            unknown = bool(rest) and type in _HAVE and rest[0] not in _HAVE[type]
            if "??" in found.text or not (unknown or (len(rest) > 1 and type.startswith(_STRICT))):
                continue
            is_whole = found.start == 0 and found.end == len(value)
            otherwise = "null" if is_whole or key in ("code", "when") else '""'
            parts += [value[at : found.start], f"<{found.text} ?? {otherwise}>"]
            at = found.end
        return "".join([*parts, value[at:]])

    def _collect(self, region: Region) -> None:
        inside = {id for id, block in self.blocks.items() if block.get("parent") == region.block}
        value = {key: ref if "??" in ref else ref.replace(">", " ?? null>") for key, ref in region.exports.items()}
        last = self.add(f"{region.block}_result", "set", {"value": value}, region, f"Result of {region.block}")
        used = {(edge["source"], edge.get("handle", "out")) for edge in self.edges}
        followed = {source for source, handle in used if handle != "error"}
        exported = {ref.strip("<>").split(" ")[0].split(".")[0].split("[")[0] for ref in region.exports.values()}
        for id in sorted(inside):
            block = self.blocks[id]
            if block["type"] in ("response", "note", "break"):
                continue
            cases = [case["id"] for case in block.get("params", {}).get("cases", ())]
            if id in exported or (id not in followed and not cases):
                self.edge(id, last)
            if (id, "error") in used and id not in followed:
                self.edge(id, last)
        if not any(edge["target"] == last for edge in self.edges):
            for id in sorted(inside):
                for case in self.blocks[id].get("params", {}).get("cases", ()):
                    self.edge(id, last, case["id"])


def common(regions: Sequence[Region], *, frame: bool = True) -> Region:
    """Return the innermost region around all of them; with `frame` one whose blocks see all items."""
    chains = [list(one.chain()) for one in regions]
    shared = next(one for one in chains[0] if all(any(one is other for other in chain) for chain in chains))
    return shared.framed() if frame else shared


def exclusive(one: Port, other: Port) -> bool:
    """Return whether at most one of two outputs is taken."""
    return any(a == b and i != j for a, i in one.guard for b, j in other.guard)


# order and cycles


def order(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[str]:
    """The nodes in an order in which sources come first; of those that are free, the first in `nodes`."""
    left = dict.fromkeys(nodes, 0)
    after: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in set(edges):
        after[source].append(target)
        left[target] += 1
    place = {name: i for i, name in enumerate(nodes)}
    ready = sorted((n for n in nodes if left[n] == 0), key=place.__getitem__)
    made: list[str] = []
    while ready:
        made.append(name := ready.pop(0))
        for target in after[name]:
            left[target] -= 1
            if left[target] == 0:
                ready.append(target)
        ready.sort(key=place.__getitem__)
    return made + [name for name in nodes if name not in set(made)]


def reached(start: Sequence[str], after: Callable[[str], Sequence[str]], stop: str | None = None) -> set[str]:
    found: set[str] = set()
    todo = list(start)
    while todo:
        name = todo.pop()
        if name not in found and name != stop:
            found.add(name)
            todo.extend(after(name))
    return found


def cycles(nodes: Sequence[str], after: Callable[[str], Sequence[str]]) -> list[set[str]]:
    """Return the sets of nodes that reach each other."""
    reach = {name: reached(after(name), after) for name in nodes}
    found: list[set[str]] = []
    for name in nodes:
        if name in reach[name] and not any(name in one for one in found):
            found.append({other for other in reach[name] if name in reach[other]})
    return found
