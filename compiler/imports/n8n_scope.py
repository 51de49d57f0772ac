"""The items that a node of n8n can read, from its place in the document: its own, and those of nodes before it."""

from __future__ import annotations

from typing import Protocol

from compiler.imports.n8n_flow import Graph, Port, Region, common
from compiler.imports.n8n_source import Source
from compiler.imports.n8n_step import Node
from compiler.imports.n8n_text import Item
from compiler.references import normalize


class Converted(Protocol):
    """The nodes that were converted before."""

    title: str
    source: Source
    graph: Graph
    ports: dict[str, list[Port]]
    files: dict[str, tuple[Region, dict[str, str]]]
    regions: dict[str, Region]


class Place:
    """The place of one node; a `Scope` for its texts."""

    def __init__(self, of: Converted, node: Node | None, region: Region | None = None, item: Item | None = None,
                 lists: list[str] | None = None) -> None:  # fmt: skip
        self._of, self._node, self._item, self._lists = of, node, item, lists or ["[{}]"]
        self._region = region or of.graph.root

    def title(self) -> str:
        return self._of.title

    def own(self) -> Item | None:
        return self._item

    def own_items(self) -> str:
        return self._lists[0]

    def index(self) -> str:
        found = next((one for one in self._region.chain() if one.block), None)
        return f"<{found.block}.index>" if found else "0"

    def _port(self, name: str) -> Port | None:
        ports = self._of.ports.get(name)
        if ports is None:
            name = next((n for n in self._of.ports if normalize(n) == normalize(name)), name)
            ports = self._of.ports.get(name)
        if self._node is None or not self._of.source.is_before(name, self._node.name):
            return None
        return next((one for one in ports or () if one.block), None)

    def item_of(self, name: str, which: str) -> Item | str | None:
        if name in self._of.regions and name not in self._of.source.cycles:  # a loop: the item of this iteration
            region = self._of.regions[name]
            if any(one is region for one in self._region.chain()):
                return Item(f"{region.block}.item")
        port = self._port(name)
        if port is None:
            return None
        if any(one is port.region for one in self._region.chain()):
            if port.item is not None:
                return port.item
            inside = next((one for one in self._region.chain() if one.given and one.given == port.many), None)
            if inside is not None and which not in ("first", "last"):
                return Item(f"{inside.block}.item")
            many = port.many or "[]"
            if which != "last" and many.startswith("<") and many.count("<") == 1:
                return Item(f"{many.strip('<>')}[0]")
            return f"({many}).at({-1 if which == 'last' else 0})"
        around = common([self._region, port.region], frame=False)
        return f"({self._of.graph.listing(port, around, follows=False)}).at({-1 if which == 'last' else 0})"

    def items_of(self, name: str) -> str | None:
        port = self._port(name)
        if port is None:
            return None
        around = common([self._region, port.region], frame=False)
        return self._of.graph.listing(port, around, sure=port.region is around and not port.guard, follows=False)

    def file_of(self, name: str, node: str | None = None) -> str | None:
        here, named = list(self._region.chain()), node or (self._node.name if self._node is not None else "")
        todo, seen, other = [named], {named}, None
        while todo:
            at = todo.pop(0)
            region, files = self._of.files.get(at, (None, {}))
            if any(one is region for one in here):
                if name in files:
                    return files[name]
                other = other or next(iter(files.values()), None)
            before = [source for source, _, _ in self._of.source.wires.get(at, ()) if source not in seen]
            seen.update(before)
            todo += before
        return other

    def context_of(self, name: str, field: str) -> str | None:
        region = self._of.regions.get(name)
        if region is None:
            return None
        last = f"(<{region.block}.index> === <{region.block}.items>.length - 1)"
        return {"noItemsLeft": last, "currentRunIndex": f"<{region.block}.index>"}.get(field)
