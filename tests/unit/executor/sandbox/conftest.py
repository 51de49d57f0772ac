from collections.abc import Iterator

import pytest

from executor.sandbox.sandbox import Sandbox
from tests.unit.executor.sandbox.run import PATIENT


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One worker: whatever a test leaves behind would meet the next one in the same guest."""
    made = Sandbox(threads=1, limits=PATIENT)
    yield made
    made.close()
