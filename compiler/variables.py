"""Workflow variables at compile time: paths that name them, blocks that write them, writers that may meet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from compiler.catalog import BlockSpec
from compiler.diagnostics import Report, suggest
from compiler.document import BlockDoc
from compiler.flow import Flow
from compiler.keys import CLEANUP_SUFFIX
from compiler.references import escape, normalize
from compiler.wiring import Wiring

# Operations that several blocks may do at the same time without losing anything.
ATOMIC: Final = frozenset(["append", "increment"])
# The number of writers of one variable that are compared pairwise.
WRITERS_MAX: Final = 50

_PART = re.compile(r"""\.(\w[\w-]*)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]""")


class Write(Struct, frozen=True):
    """One change of a variable; `pointer` leads to it in the document."""

    block: str
    variable: str
    op: str
    pointer: str


def parse_path(text: str) -> tuple[str | int, ...] | None:
    """`$.hit.body[0]["odd key"]` -> ("hit", "body", 0, "odd key"); None when it is no path to a variable."""
    if not text.startswith("$"):
        return None
    parts: list[str | int] = []
    at = 1
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            return None
        name, index, key = match.groups()
        try:
            parts.append(int(index) if index is not None else name if name is not None else msgspec.json.decode(key))
        except msgspec.DecodeError:  # half of a surrogate pair, `\\q`, a line break
            return None
        at = match.end()
    return tuple(parts) if parts and isinstance(parts[0], str) else None


def writes_of(block: BlockDoc, spec: BlockSpec | None) -> Iterator[Write]:
    """Yield the writes of a block: through its `assign`, and through its params if its type writes variables."""
    if block.assign is not None:
        path = parse_path(block.assign)
        if path:
            yield Write(block.id, str(path[0]), "set", f"/blocks/{escape(block.id)}/assign")
    for write in spec.writes(block.params) if spec is not None and spec.writes is not None else ():
        path = parse_path(write.variable) if write.variable.startswith("$") else (write.variable,)
        if path:
            yield Write(block.id, str(path[0]), write.op, f"/blocks/{escape(block.id)}/params{write.pointer}")


class Variables:
    """Declared and written variables. Names compare like those of blocks."""

    def __init__(self, wiring: Wiring, report: Report) -> None:
        self._wiring = wiring
        self._report = report
        self.declared = wiring.document.variables
        self.writes = [write for block in wiring.blocks.values() for write in writes_of(block, wiring.specs[block.id])]
        self._names = {normalize(write.variable): write.variable for write in self.writes}
        self._names.update({normalize(name): name for name in self.declared})

    def find(self, name: str) -> str | None:
        """The name as declared (or first written); None when it is neither declared nor written."""
        return self._names.get(normalize(name))

    def undeclared(self, name: str, pointer: str, block: str, doing: str) -> None:
        message = f'{self._wiring.called(block)} {doing} variable "{name[:80]}", which is not declared.'
        known = self._names.values() if doing == "reads" else self.declared
        self._report.add("variable_undeclared", pointer, message, hint=lambda: suggest(name, known), block=block)

    def check_writes(self, wiring: Wiring, flows: Mapping[str, Flow]) -> None:
        """Report undeclared names, and blocks that may set one variable at the same time: the last commit wins."""
        by_name: dict[str, list[Write]] = {}
        for write in self.writes:
            if write.variable not in self.declared and self.find(write.variable) not in self.declared:
                self.undeclared(write.variable, write.pointer, write.block, "assigns")
            if write.op not in ATOMIC and write.block in wiring.reached:
                by_name.setdefault(normalize(write.variable), []).append(write)
        for writes in by_name.values():
            blocks = list(dict.fromkeys(write.block for write in writes))[:WRITERS_MAX]
            clash = _first_clash(blocks, wiring, flows)
            if clash:
                one, other = clash
                here, there = wiring.called(one), wiring.called(other)
                where = f"{here} and {there}" if one != other else f"The parallel branches of {here}"
                message = f'{where} may set variable "{writes[0].variable}" at the same time. The last write wins.'
                pointer = next(write.pointer for write in writes if write.block == other)
                self._report.add("variable_concurrent_writers", pointer, message, block=other)


def _first_clash(blocks: list[str], wiring: Wiring, flows: Mapping[str, Flow]) -> tuple[str, str] | None:
    for i, other in enumerate(blocks):
        if any(wiring.kind(container) == "parallel" for container in wiring.above(other)):
            return other, other
        for one in blocks[:i]:
            here, there, container = _siblings(one, other, wiring)
            if CLEANUP_SUFFIX in (here, there):  # that of the run, after everything else
                continue
            here, there = here.removesuffix(CLEANUP_SUFFIX), there.removesuffix(CLEANUP_SUFFIX)
            graph = flows[container].graph
            if here == there or graph.is_upstream(here, there) or graph.is_upstream(there, here):
                continue
            if not flows[container].exclusive(here, there):
                return one, other
    return None


def _siblings(one: str, other: str, wiring: Wiring) -> tuple[str, str, str]:
    """Return the two blocks, or the containers they lie in, as seen from the innermost container that holds both."""
    chain_one = [one, *wiring.above(one)]
    chain_other = [other, *wiring.above(other)]
    while len(chain_one) > 1 and len(chain_other) > 1 and chain_one[-1] == chain_other[-1]:
        chain_one.pop()
        chain_other.pop()
    return chain_one[-1], chain_other[-1], wiring.parent[chain_one[-1]]
