"""Two profiles: `ci`, the same examples each time, and, with WEFT_FUZZ_EXAMPLES=n, n new ones for each property."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from tests.fuzz.params import BLOCKS
from tests.support.python_guest import built_python

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("ci", deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)
settings.register_profile("more", deadline=None, print_blob=True, suppress_health_check=QUIET)
settings.load_profile("more" if os.environ.get("WEFT_FUZZ_EXAMPLES") else "ci")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    built_python()  # and read: once in a process, beyond what a document may take
    sandbox = Sandbox(threads=1)
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="session")
def registry(sandbox: Sandbox) -> Registry:
    return Registry.load(BLOCKS, sandbox)
