from collections.abc import Iterator

import pytest

from executor.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One worker: whatever a test leaves behind would meet the next one in the same guest."""
    made = Sandbox(threads=1)
    yield made
    made.close()
