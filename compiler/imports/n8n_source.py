"""A workflow of n8n as it is read: its nodes, their connections, and what leads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from compiler.imports.n8n_flow import cycles, reached
from compiler.imports.n8n_step import Node
from compiler.imports.n8n_text import Loss, free, slug
from compiler.imports.sim_text import mapping, number_in
from compiler.references import find, normalize, parse

_PACKAGES: Final = ("n8n-nodes-base.", "@n8n/n8n-nodes-langchain.", "n8n-nodes-langchain.")
_RESERVED: Final = ("loop", "parallel", "workflow", "variable", "input")


class Source:
    """`wires`: by target, (source, output, input). `loops`: by node of the type Loop Over Items, the nodes inside;
    `cycles`: the same for other cycles, by the node at which they begin; `returns`: what leads back to either.
    `delayed`: pairs of which the second runs after the first, although no wire joins them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.nodes: dict[str, Node] = {}
        self.notes: list[Node] = []
        self.ids: dict[str, str] = {}
        self.titles: dict[str, str] = {}  # where the name would be a reference in a text
        self.wires: dict[str, list[tuple[str, int, int]]] = {}
        self.loops: dict[str, set[str]] = {}
        self.cycles: dict[str, set[str]] = {}
        self.returns: dict[str, list[tuple[str, int]]] = {}
        self.delayed: list[tuple[str, str]] = []
        self.losses: list[tuple[Node, Loss]] = []
        self._before: dict[str, set[str]] = {}
        self._read()
        self._find_loops()

    def _read(self) -> None:
        texts = find(orjson.dumps([n.get("parameters") for n in self._document["nodes"]]).decode())
        words = {normalize(str(parsed.segments[0])) for one in texts if (parsed := parse(one.text)) is not None}
        found: dict[str, Node] = {}
        for at, raw in enumerate(self._document["nodes"]):
            kind = str(raw["type"])
            bare = next((kind.removeprefix(p) for p in _PACKAGES if kind.startswith(p)), kind)
            bare = "openAiMessage" if "langchain" in kind and bare == "openAi" else bare
            name = str(raw.get("name") or bare)
            version = number_in(raw.get("typeVersion", 1))
            version = version if isinstance(version, int | float) else 1
            node = Node(name, slug(name), bare, version, mapping(raw.get("parameters")), f"/nodes/{at}", raw, {})
            if bare == "stickyNote":
                self.notes.append(node)
            else:
                found[name] = node
        used_as_part: set[str] = set()
        for source, outputs in mapping(self._document["connections"]).items():
            for kind, ways in mapping(outputs).items():
                for output, ends in enumerate(ways if isinstance(ways, list) else ()):
                    for end in ends if isinstance(ends, list) else ():
                        target = mapping(end).get("node")
                        if source not in found or not isinstance(target, str) or target not in found:
                            continue
                        if kind == "main":
                            index = mapping(end).get("index")
                            self.wires.setdefault(target, []).append(
                                (source, output, index if isinstance(index, int) else 0)
                            )
                        else:
                            found[target].sub.setdefault(kind, []).append(found[source])
                            used_as_part.add(source)
        for name, node in found.items():
            if name in used_as_part:
                continue
            self.nodes[name] = node
            mine = node.id
            if mine in _RESERVED or normalize(mine) in words or normalize(name) in words:
                mine, self.titles[name] = f"{mine}_node", f"{name} node"
            self.ids[name] = free(mine, lambda id: id in self.ids.values(), "_")
        self.wires = {t: [w for w in ws if w[0] in self.nodes] for t, ws in self.wires.items() if t in self.nodes}

    def after(self, name: str, output: int | None = None) -> list[str]:
        return [
            target
            for target, wires in self.wires.items()
            for source, way, _ in wires
            if source == name and (output is None or way == output)
        ]

    def is_before(self, name: str, node: str) -> bool:
        """Return whether a node runs before another one, or is in a loop with it."""
        if node not in self._before:
            self._before[node] = reached([node], lambda one: [source for source, _, _ in self.wires.get(one, ())])
        bodies = (*self.loops.values(), *self.cycles.values())
        return name in self._before[node] or any(name in body and node in body for body in bodies)

    def done_of(self, node: Node) -> int:
        return 0 if node.version >= 3 else 1

    def _find_loops(self) -> None:
        """Cut the edges that lead back. Loop Over Items is one kind of cycle, the others are another."""
        for name, node in self.nodes.items():
            if node.kind != "splitInBatches":
                continue
            done = self.done_of(node)
            body = reached(self.after(name, 1 - done), self.after, name)
            if not body:
                self.returns[name] = [(name, 1 - done)]
                continue
            after = reached(self.after(name, done), self.after, name)
            if body <= after:
                for target in self.after(name, done):
                    self.wires[target] = [w for w in self.wires[target] if w[:2] != (name, done)]
                self.losses.append(
                    (node, Loss("What follows it when it is done is inside it, too.", "Check the loop."))
                )
            else:
                body -= after
            self.loops[name] = body
            self.returns[name] = [(s, o) for s, o, _ in self.wires.get(name, ()) if s in body or s == name]
            self.delayed += [(one, target) for one in body for target in self.after(name, done) if target not in body]
        for name, ends in self.returns.items():
            self.wires[name] = [wire for wire in self.wires[name] if (wire[0], wire[1]) not in ends]
        for members in cycles(list(self.nodes), self.after):
            entries = [n for n in self.nodes if n in members and any(s not in members for s, _, _ in self.wires[n])]
            entry = entries[0] if entries else next(n for n in self.nodes if n in members)
            self.cycles[entry] = members
            self.returns[entry] = [(s, o) for s, o, _ in self.wires[entry] if s in members]
            self.wires[entry] = [wire for wire in self.wires[entry] if wire[0] not in members]
            inside = {name: [one for one in self.after(name) if one in members] for name in members}
            left = cycles(sorted(members), inside.__getitem__)
            for one in left:  # a cycle inside the cycle: cut it anywhere
                first = next(n for n in self.nodes if n in one)
                self.wires[first] = [wire for wire in self.wires[first] if wire[0] not in one]
                self.losses.append((self.nodes[first], Loss("A connection back to it is left out.", "Use a loop.")))
            outside = {t for n in members for t in self.after(n) if t not in members}
            self.delayed += [(n, t) for n in members for t in outside]
