"""A node of n8n while it is translated, and the block that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from compiler.imports.n8n_flow import Graph, Region
from compiler.imports.n8n_text import Item, Texts

Style = Literal["trigger", "each", "all"]


class Node(Struct, eq=False):
    """A node of the export. `sub`: the nodes that are connected with its ai_ inputs, by input."""

    name: str
    id: str
    kind: str
    version: float
    params: Mapping[str, Any]
    pointer: str
    raw: Mapping[str, Any]
    sub: dict[str, list[Node]] = {}

    def text(self) -> str:
        return str(self.params.get("content") or "").removeprefix("=")


class Made(NamedTuple):
    """A block. `out`: its item below the id of the block, None if it passes on the item before it. `many`: JavaScript
    of its items, in which `@` stands for the id. `handles`: the exits, in the order of the node's outputs. `keeps`: the
    item before it has the other fields. `files`: by names of n8n, where the files of the item are, below the id."""

    type: str
    params: dict[str, Any]
    out: str | None = ""
    many: str | None = None
    handles: Sequence[str] = ("out",)
    fields: Any = ()
    policy: Mapping[str, Any] = {}
    ends: bool = False
    keeps: bool = False
    files: Mapping[str, str] = {}


class Step(Struct, eq=False):
    """A node while it is translated: where it is, and what it gets. `lists`: by input, JavaScript of its items.
    `before`: blocks that run before the one that it becomes, in this order."""

    node: Node
    id: str
    graph: Graph
    region: Region
    texts: Texts
    item: Item | None
    lists: list[str]
    single: bool
    before: list[str] = []

    def get(self, *path: str, otherwise: Any = None) -> Any:
        value: Any = self.node.params
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return otherwise if value in (None, "") else value

    def text(self, *path: str) -> str:
        return str(self.get(*path, otherwise=""))

    def value(self, *path: str, otherwise: Any = None) -> Any:
        return self.texts.value(located(self.get(*path, otherwise=otherwise)), path[-1])

    def js(self, *path: str, otherwise: Any = None) -> str:
        return self.texts.script(self.get(*path, otherwise=otherwise))

    def lose(self, message: str, hint: str) -> None:
        self.texts.lose(message, hint)

    def first(self, type: str, params: dict[str, Any], suffix: str) -> str:
        """Add a block that runs before, and return its id."""
        title = f"{self.node.name}: {suffix}"
        self.before.append(self.graph.add(f"{self.id}_{suffix}", type, params, self.region, title))
        return self.before[-1]

    def file(self, *path: str) -> str | None:
        """Return a reference to the file of the item that a setting names."""
        name = self.text(*path).removeprefix("=") or "data"
        found = self.texts.scope.file_of(name)
        if found is None:
            self.lose(f'It reads the file "{name}", which no node before it makes.', "Choose the file in the block.")
        return None if found is None else f"<{found}>"

    def items(self) -> str:
        return self.lists[0] if self.lists else "[{}]"

    def program(self, body: str, *, many: bool = True) -> Made:
        """Return a block that computes its items of all items it gets, or of `$json` its one item."""
        code = f"const items = {self.items()};\n{body}"
        return Made("function", {"code": code}, None if many else ".result", "<@.result>" if many else None)


def located(value: Any) -> Any:
    """Resource locators are {__rl, mode, value}."""
    return value.get("value") if isinstance(value, Mapping) and "__rl" in value else value
