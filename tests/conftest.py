"""Settings of all tests."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]  # xdist has no types

# How long one example takes, or making it, says how busy the machine is; what must be quick measures its own time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Most tests make a database of their own. In memory, its syncs cost nothing; no test but proofs depends on a disk.
MEMORY = "/dev/shm"
MEMORY_MIN = 4 << 30


def pytest_configure() -> None:
    if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)  # `make check` sets it to a disk


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole-files",
        action="store_true",
        help="give each file of tests to one worker, with --dist loadgroup; what is set up for a file is set up once",
    )


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """In the order of collection: the largest group is not always what takes longest."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getoption("whole_files") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker has much left when the others are done; unit tests come last."""
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, "unit" in item.path.parts))
