"""What the tests of the editor read is what this version makes. If not: `python -m tests.web.fixtures`."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import orjson
import pytest

from tests.web.fixtures import BLOCKS, RUNS, block_types, path_of, record, server, shape


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with server() as client:
        yield client


def test_the_block_types() -> None:
    assert BLOCKS.read_bytes() == block_types()


@pytest.mark.parametrize("name", RUNS)
def test_a_run(client: httpx.Client, name: str) -> None:
    """Times and the order of branches may differ."""
    assert shape(orjson.loads(path_of(name).read_bytes())) == shape(record(client, name))
