from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fuzz.api.world import TIMEOUT_S, TOKEN, World
from tests.support.server import SyncServerProcess

HERE = Path(__file__).parent
TEST_S = 600  # a thousand requests, on a machine that is busy with other things


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one group: with one server and one order the same requests find the same things each time."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("openapi"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_S))


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    folder = tmp_path_factory.mktemp("openapi")
    process = SyncServerProcess(
        folder,
        {
            "WEFT_TOKEN": TOKEN,
            "WEFT_FUNCTIONS": "tests.support.durable_stock",
            "WEFT_MODEL_LOCAL": "http://127.0.0.1:9/v1",  # nothing listens there
        },
        log=folder / "log",
    )
    yield process
    if process.running:
        process.kill()


@pytest.fixture
def world(server: SyncServerProcess) -> Iterator[World]:
    """New things for each test, because other tests delete theirs."""
    yield World(server)
    well(server)


def well(server: SyncServerProcess) -> None:
    """The server is as well afterwards as before."""
    assert httpx.get(f"{server.url}/healthz", timeout=TIMEOUT_S).status_code == 200
    log = (server.folder / "log").read_text()
    assert "Traceback" not in log, log[-5000:]
