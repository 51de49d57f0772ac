"""The connectors of this process: those that come with weft, those of installed packages, those of a folder, of which
one replaces another of the same service, and those of the database. The latter may change at any time, and in another
process: before one is used, the hashes of all are compared.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Final

import orjson
from msgspec import Struct
from msgspec.json import decode

from compiler.catalog import CONNECTOR, EVENT
from compiler.plan import Plan
from executor.blocks.connectors.block import ConnectorBlock, Unread
from executor.blocks.connectors.document import Connector, trusted
from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.validate import read
from executor.blocks.types.registry import Registry
from executor.blocks.types.sources import SourceBlock, sources
from executor.errors import BadRequest
from executor.kernel.process.extras import entry_points
from executor.kernel.store.topics.connectors import ConnectorRow
from executor.kernel.store.topics.store import Store

GROUP: Final = "weft.connectors"
FILES_MAX: Final = 500
_EVENTS: Final = b'\n  "events": {'  # in a document of weft that has some


def connectors(folder: Path | None = None) -> list[ConnectorBlock | EventBlock | SourceBlock]:
    """Load those of weft, of installed packages and of the folder, each with the trigger of its events, and triggers of
    other sources. An unusable one is logged and left out: the others have to run."""
    return [*sources(), *_shipped(), *(block for one in _others(folder) for block in _with_events(one))]


def _with_events(block: ConnectorBlock) -> list[ConnectorBlock | EventBlock]:
    return [block, EventBlock(block)] if block.has_events else [block]


def _others(folder: Path | None) -> Iterator[ConnectorBlock]:
    owners = {block.type: "weft" for block in _shipped()}
    for owner, block in _installed():
        first = owners.setdefault(block.type, owner)
        if first == owner:
            yield block
        else:
            _log.error("connector %s of %s is left out: %s has one of this service", block.type, owner, first)
    if folder is not None:
        yield from _of(folder)


def connector(path: Path | str) -> ConnectorBlock:
    """Return the block type of a connector document. Raises BadRequest: `errors` has all that is wrong; OSError."""
    return ConnectorBlock(read(Path(path).read_bytes()))


@cache
def _shipped() -> tuple[ConnectorBlock | EventBlock, ...]:
    every = sorted(files(__package__).joinpath("services").iterdir(), key=lambda one: one.name)
    found = [(file.name.removesuffix(".json"), file.read_bytes()) for file in every if file.name.endswith(".json")]
    unread = (Unread(name, _EVENTS in data, partial(_read_shipped, data)) for name, data in found)
    return tuple(block for one in unread for block in _with_events(ConnectorBlock(one)))


def _read_shipped(data: bytes) -> Connector:
    return trusted(orjson.loads(data))


def _installed() -> Iterator[tuple[str, ConnectorBlock]]:
    """Yield the documents in the folders of packages that the entry points name, with the package each is of."""
    for point in entry_points(GROUP):
        owner = point.dist.name if point.dist is not None else "an unknown package"
        try:
            documents = sorted(files(point.module).iterdir(), key=lambda one: one.name)
        except (ImportError, OSError, TypeError) as error:  # TypeError: a module without a folder
            _log.error("the connectors of %s (%s) are left out: %s", owner, point.value, error)
            continue
        for file in documents:
            if file.name.endswith(".json"):
                try:
                    yield owner, ConnectorBlock(read(file.read_bytes()))
                except (BadRequest, OSError) as error:
                    _log.error("connector %s of %s is left out: %s", file.name, owner, error)


def _of(folder: Path) -> Iterator[ConnectorBlock]:
    try:
        found = sorted(folder.glob("*.json"))[:FILES_MAX]
    except OSError as error:
        _log.error("the folder of connectors cannot be read: %s", error)
        return
    for path in found:
        try:
            yield ConnectorBlock(read(path.read_bytes()))
        except BadRequest as error:
            _log.error("connector %s is left out: %s; %s", path, error, error.hint)
        except OSError as error:
            _log.error("connector %s is left out: it cannot be read: %s", path, error)


PLANS_MAX: Final = 10_000

_log = logging.getLogger("weft.connectors")


class StoredConnector(Struct, frozen=True):
    row: ConnectorRow
    connector: Connector


class StoredConnectors:
    def __init__(self, store: Store, registry: Registry) -> None:
        self.revision = 0  # one higher with each change that was seen
        self.known: dict[str, StoredConnector] = {}
        self._store = store
        self._registry = registry
        self._hashes: dict[str, str] = {}  # includes connectors that are not valid
        self._needed: dict[str, bool] = {}  # by the hash of a plan
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Load the connectors stored now. Raises StoreError."""
        async with self._lock:
            hashes = await self._store.connector_hashes()
            if hashes == self._hashes:
                return
            changed = [service for service, hash in hashes.items() if self._hashes.get(service) != hash]
            rows = await self._store.get_connectors(changed) if changed else []
            known = {service: one for service, one in self.known.items() if service in hashes}
            for row in rows:
                known.pop(row.service, None)
                if (connector := _read(row)) is not None:
                    known[row.service] = StoredConnector(row, connector)
            self.known = known
            self._hashes = hashes
            blocks = [block for one in known.values() for block in _with_events(ConnectorBlock(one.connector))]
            self._registry.stored = {block.type: block for block in blocks}
            self.revision += 1

    async def refresh_for(self, plan: Plan) -> None:
        """Refresh if the plan has a block of a connector. Raises StoreError."""
        needed = self._needed.get(plan.hash)
        if needed is None:
            if len(self._needed) >= PLANS_MAX:
                self._needed.clear()
            needed = self._needed[plan.hash] = self._may_be_stored(_types(plan))
        if needed:
            await self.refresh()

    def _may_be_stored(self, types: Iterable[str]) -> bool:
        return any(type.startswith((CONNECTOR, EVENT)) and not self._registry.is_fixed(type) for type in types)


def _types(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        yield node.type
        tools = decode(node.params).get("tools") if node.type == "agent" else None
        yield from (str(tool.get("block")) for tool in tools or () if isinstance(tool, dict))


def _read(row: ConnectorRow) -> Connector | None:
    try:
        return read(row.document)
    except BadRequest as error:
        _log.error("the connector %s cannot be used by this version: %s", row.service, error)
        return None
