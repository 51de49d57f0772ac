from collections.abc import Iterator

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from tests.unit.executor.blocks.sandbox.run import PATIENT, Apart


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One worker: whatever a test leaves behind would meet the next one in the same guest."""
    made = Sandbox(threads=1, limits=PATIENT)
    yield made
    made.close()


@pytest.fixture(scope="module", params=[Sandbox, Apart], ids=["inline", "process"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Programs run in this process, and the same ones in another."""
    made: Sandbox = request.param(threads=1, limits=PATIENT)
    yield made
    made.close()
