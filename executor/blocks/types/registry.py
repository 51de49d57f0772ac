"""The block types of this process: those of installed packages (entry points `weft.blocks`), those passed by hand, and
those of connectors stored in the database (`stored`).

It is also the compiler's source of block types (`compiler.catalog.Catalog`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import Distribution, EntryPoint
from typing import Any, Final, Protocol

from compiler.catalog import BlockSpec, CodeKind, Finding
from executor.errors import NotFound
from executor.kernel.handler.base import Block
from executor.kernel.process.extras import entry_points

GROUP: Final = "weft.blocks"
# The fields of a spec that an editor needs.
SHOWN: Final = (
    "type", "title", "description", "category", "params", "handles", "container", "trigger", "output", "effect",
    "runners", "attempts", "timeout_ms", "sentence", "icon",
)  # fmt: skip

_log = logging.getLogger(__name__)


class SyntaxChecker(Protocol):
    """The part of the sandbox that the compiler uses."""

    def check_syntax(self, source: str, kind: CodeKind) -> str | Finding | None: ...


class Registry:
    """Immutable after `load`, but `stored`, which is replaced as a whole. `sandbox` checks syntax: one, or a function
    that makes it at the first check; with none at all nothing is found to be wrong."""

    def __init__(
        self, blocks: Iterable[Block], sandbox: SyntaxChecker | Callable[[], SyntaxChecker] | None = None
    ) -> None:
        # Connectors know their type without their spec, for which they read their document.
        self._blocks: dict[str, Block] = {getattr(block, "type", "") or block.spec.type: block for block in blocks}
        self._sandbox = sandbox
        self.stored: Mapping[str, Block] = {}

    @classmethod
    def load(
        cls, extra: Iterable[Block] = (), sandbox: SyntaxChecker | Callable[[], SyntaxChecker] | None = None
    ) -> Registry:
        """Load all installed block types, then `extra`, which replaces installed blocks of the same type. A package
        whose block cannot be loaded is logged and left out."""
        return cls([*_installed(), *extra], sandbox)

    def get(self, type: str) -> BlockSpec | None:
        """Return the spec of a block type, or None if it is not installed."""
        block = self._find(type)
        return block.spec if block is not None else None

    def is_fixed(self, type: str) -> bool:
        """Return True if the type exists as long as the process does."""
        return type in self._blocks

    def types(self) -> list[str]:
        """Return the names of all block types, sorted."""
        return sorted({*self._blocks, *self.stored})

    def handler(self, type: str) -> Block:
        """Return the block that runs nodes of this type; `loop:start`, `parallel:end` and the like mean the
        container's. Raises NotFound(block_type_unknown) if the plan was made where more packages are installed."""
        block = self._find(type.removesuffix(":start").removesuffix(":end"))
        if block is None:
            raise NotFound(f"there is no block type {type!r} here", code="block_type_unknown")
        return block

    def _find(self, type: str) -> Block | None:
        return self._blocks.get(type) or self.stored.get(type)

    def check_syntax(self, source: str, kind: CodeKind) -> str | Finding | None:
        """Return the syntax error of a piece of JavaScript or Python, a finding if it cannot run here, or None."""
        if self._sandbox is None:
            return None
        if callable(self._sandbox):
            self._sandbox = self._sandbox()
        return self._sandbox.check_syntax(source, kind)

    def catalogue(self) -> list[dict[str, Any]]:
        """Return the description of each type for an editor, as JSON, by category and title."""
        order = ("trigger", "flow", "data", "action", "connector", "people", "annotation")
        specs = sorted(
            (block.spec for block in {**self.stored, **self._blocks}.values()),
            key=lambda s: (order.index(s.category), s.title, s.type),
        )
        shown = [{name: getattr(spec, name) for name in SHOWN} for spec in specs]
        return [{**one, "handles": list(one["handles"]), "runners": list(one["runners"])} for one in shown]


def _installed() -> Iterator[Block]:
    owners: dict[str, Distribution | None] = {}
    for point in entry_points(GROUP):
        block = _load(point)
        if block is None:
            continue
        first = owners.setdefault(block.spec.type, point.dist)
        if first is not point.dist:
            _log.error(
                "block type %r of %s is skipped: %s has a block of the same name",
                block.spec.type,
                _owner(point.dist),
                _owner(first),
            )
            continue
        yield block


def _owner(package: Distribution | None) -> str:
    """Return the name of the package, which reads all its metadata (a millisecond)."""
    return package.name if package is not None else "an unknown package"


def _load(point: EntryPoint) -> Block | None:
    """Load a block. Returns None, and logs it, if that fails: one broken package must not keep the others from
    running."""
    try:
        block = point.load()
        if not isinstance(block.spec, BlockSpec) or not callable(block.run):
            raise TypeError("it has no BlockSpec or no run")
    except Exception:
        owner = _owner(point.dist)
        _log.exception("block %r of %s (%s) cannot be loaded and is skipped", point.name, owner, point.value)
        return None
    loaded: Block = block
    return loaded
