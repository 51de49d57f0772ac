from collections.abc import Iterator

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from tests.support.python_guest import built_python


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    built_python()
    made = Sandbox(threads=1)
    yield made
    made.close()
