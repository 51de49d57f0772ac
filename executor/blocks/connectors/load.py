"""The connectors of this process: those that come with weft, and those of a folder. One of the folder replaces one of
weft's of the same service."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

import orjson

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.document import read, trusted
from executor.errors import BadRequest

FILES_MAX: Final = 500

_log = logging.getLogger(__name__)


def connectors(folder: Path | None = None) -> list[ConnectorBlock]:
    """Load the documents of the folder. An unusable one is logged and left out: the others have to run."""
    return [*_shipped(), *(_of(folder) if folder is not None else ())]


def _shipped() -> Iterator[ConnectorBlock]:
    for file in sorted(files(__package__).joinpath("services").iterdir(), key=lambda one: one.name):
        if file.name.endswith(".json"):
            yield ConnectorBlock(trusted(orjson.loads(file.read_bytes())))


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
