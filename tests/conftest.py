"""Settings of all tests."""

from __future__ import annotations

import os
import shutil

from hypothesis import HealthCheck, settings

# How long one example takes, or making it, says how busy the machine is; what must be quick measures its own time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Most tests make a database of their own. In memory, its syncs cost nothing; no test but proofs depends on a disk.
MEMORY = "/dev/shm"
MEMORY_MIN = 4 << 30


def pytest_configure() -> None:
    if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)  # `make check` sets it to a disk
