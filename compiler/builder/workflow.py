"""`Workflow`: steps in Python, and the document that they make. The same source makes the same document.

    flow = Workflow(
        "demo",
        Http("https://example.com/data", id="hit", assign_to="$.hit"),
        Sleep(30, id="sleep"),
        SendEmail("me@example.com", "Demo", ref("$.hit.body"), id="email"),
    )
    flow.document()  # what a canvas would have made, without places: the editor finds them

Nothing happens when it is made: no clock, no network, no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from compiler.builder.blocks import Agent, Start
from compiler.builder.errors import BuildError
from compiler.builder.step import Block, Exits, Graph, Step, as_step, edge, is_trigger, plain
from compiler.builder.step import Sequence as InTurn
from compiler.document import BLOCKS_MAX, FORMAT, ID_PATTERN
from compiler.wiring import FINALLY, OUT

_VARIABLE: Final = re.compile(r"\$\.([^.\[\]]+)")


class Workflow:
    """`steps`: one after another. Without a trigger among them a `start` block is the first.

    input       JSON Schema of the input of a run
    variables   workflow variables with their first values
    settings    of the document: `{"max_concurrency": 10}`
    finally_    the cleanup of a run: a step that runs after all others have ended in any way
    order       ids in the order of the document, if it is not that of the steps; the others follow
    more        other fields of the document, such as `notes`
    """

    def __init__(
        self,
        name: str | None,
        *steps: Step | Sequence[Step],
        description: str | None = None,
        input: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        finally_: Step | Sequence[Step] | None = None,
        order: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.root = InTurn(*steps)
        self.cleanup = None if finally_ is None else as_step(finally_)
        self._order = order
        self._fields = {"description": description, "input": input, "variables": variables, "settings": settings}
        self._more = more or {}

    def document(self) -> dict[str, Any]:
        """The workflow in the format weft/1, a new one at each call. Raises BuildError."""
        site = _Site([*_blocks(self.root), *(_blocks(self.cleanup) if self.cleanup is not None else ())])
        behind: Exits = None
        if not site.triggers and not any(isinstance(step, Graph) for step in self.root.steps):
            behind = [(site.begin(Start()), OUT)]
        self.root.build(site, behind, None)
        if self.cleanup is not None:
            if not site.triggers:
                raise BuildError("finally_: no block of the Graph starts runs.", "Put a Start among its steps.")
            self.cleanup.build(site, [(site.id_of(trigger), FINALLY) for trigger in site.triggers], None)
        made: dict[str, Any] = {"format": FORMAT}
        if self.name is not None:
            made["name"] = plain(self.name, "name")
        for field, value in self._fields.items():
            if value is not None:
                made[field] = plain(value, field)
        made["blocks"] = self._ordered(site.blocks)
        made["edges"] = site.edges
        for field, value in self._more.items():
            made[field] = plain(value, field)
        return made

    def as_tool(self) -> dict[str, Any]:
        if self.name is None:
            raise BuildError("A workflow that is a tool needs a name.")
        made = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", self.name), "workflow": self.name}
        given = {"description": self._fields["description"], "arguments": self._fields["input"]}
        return made | {key: value for key, value in given.items() if value is not None}

    @property
    def steps(self) -> dict[str, Any]:
        """The steps that its agents call, by name."""
        return {one.name: one for one in self._called() if not hasattr(one, "document")}

    @property
    def calls(self) -> dict[str, Any]:
        """The workflows that its agents call, by name."""
        return {one.name: one for one in self._called() if hasattr(one, "document")}

    def _called(self) -> Iterator[Any]:
        for step in (self.root, self.cleanup):
            for block in _blocks(step) if step is not None else ():
                if isinstance(block, Agent):
                    yield from block.calls

    def _ordered(self, blocks: dict[str, Any]) -> dict[str, Any]:
        if unknown := [name for name in self._order if name not in blocks]:
            raise BuildError(f'order: there is no block "{unknown[0]}".')
        return {name: blocks[name] for name in dict.fromkeys([*self._order, *blocks])}


def as_workflow(value: Any, name: str | None = None) -> Workflow:
    """Return a workflow as it is, or make one from a tree of steps, in which each variable that a step is assigned to
    begins as null. `name` is the name for a tree. Raises BuildError."""
    if isinstance(value, Workflow):
        return value
    step = as_step(value)
    paths = [str(block.options["assign_to"]) for block in _blocks(step) if "assign_to" in block.options]
    variables = {found[1]: None for path in paths if (found := _VARIABLE.match(path))}
    return Workflow(name, step, variables=variables or None)


def _blocks(step: Step) -> Iterator[Block]:
    stack = [step]
    while stack:
        step = stack.pop()
        if isinstance(step, Block):
            yield step
        stack += reversed(list(step.inner()))


def defined_in(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the workflows among the names of a module: values with a `document()`, each once, in the order of the
    file; if there are none, the value called `workflow`. A name that begins with `_` is for the file alone."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in names.items():
        is_one = not isinstance(value, type) and callable(getattr(value, "document", None))
        if is_one and not name.startswith("_") and id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    if not found and "workflow" in names:
        found["workflow"] = names["workflow"]
    return found


def document_of(value: Any, name: str) -> dict[str, Any]:
    """Return the document of a workflow, a tree of steps, or a function without arguments that returns either. `name`
    is used if it has none. Raises BuildError, and any error of the function."""
    if not hasattr(value, "document") and not isinstance(value, Step) and callable(value):
        value = value()
    if isinstance(value, Step | list):
        value = as_workflow(value, name)
    document = value.document() if callable(getattr(value, "document", None)) else value
    if not isinstance(document, dict):
        raise BuildError(f"This is not a workflow: its type is {type(value).__name__}.")
    return document if document.get("name") else {**document, "name": name}


class _Site:
    """The document while it is built. Ids are known before the first block is added."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks: dict[str, Any] = {}
        self.edges: list[dict[str, Any]] = []
        self.triggers = [block for block in blocks if is_trigger(block.type)]
        if len(blocks) > BLOCKS_MAX:
            raise BuildError(f"The workflow has {len(blocks):,} blocks. The limit is {BLOCKS_MAX:,}.")
        self._ids: dict[int, str] = {}
        self._named: dict[str, Block] = {}
        for block in blocks:
            if block.id is not None:
                self._name(block, block.id)
        for block in blocks:
            if block.id is None:
                self._name(block, self._free(block.stem))

    def begin(self, start: Start) -> str:
        self._name(start, self._free("start"))
        self.triggers.append(start)
        return self.add(start, None, None)

    def id_of(self, block: Block) -> str:
        if id(block) not in self._ids:
            raise BuildError(f"{block!r} is in a connection and not in the workflow.")
        return self._ids[id(block)]

    def add(self, block: Block, behind: Exits, parent: str | None) -> str:
        own = self.id_of(block)
        if behind is not None and is_trigger(block.type):
            raise BuildError(f"{block!r} starts runs, and something comes before it.", "Put it first.")
        if behind == [] and block.type != "note":
            raise BuildError(f"{block!r} never runs: every path before it ends.", "Remove it, or an End() before it.")
        self.blocks[own] = block.block(own, parent)
        for source, handle in behind or ():
            if block.type != "note":
                self.connect(edge(source, handle, own))
        return own

    def connect(self, edge: Mapping[str, Any]) -> None:
        self.edges.append(dict(edge))

    def _name(self, block: Block, name: str) -> None:
        if not isinstance(name, str) or ID_PATTERN.fullmatch(name) is None:
            raise BuildError(f"{block!r}: this cannot be an id.", "Use 1 to 128 letters, digits and . _ -")
        if id(block) in self._ids:
            raise BuildError(f"{block!r} is in the workflow twice.", "Make two blocks of it.")
        if (other := self._named.get(name)) is not None:
            raise BuildError(f'The id "{name}" is used twice: {other!r} and {block!r}.', "Change one of them.")
        self._named[name] = block
        self._ids[id(block)] = name

    def _free(self, stem: str) -> str:
        number, name = 1, stem
        while name in self._named:
            number += 1
            name = f"{stem}_{number}"
        return name
