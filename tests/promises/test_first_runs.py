"""The first run of an example is quick and right."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from executor.http.client import GuardedClient
from executor.llm.client import ModelClient
from executor.llm.endpoints import Endpoints
from tests.support.server import SyncServerProcess

LIBRARY = "pydantic_core"  # the machine code that the library for models brings


def has_loaded(server: SyncServerProcess) -> bool:
    return LIBRARY in Path(f"/proc/{server.pid}/maps").read_text()


@pytest.mark.parametrize(
    "environ", [{"WEFT_MODEL_DEV": "http://127.0.0.1:9/v1"}, {"WEFT_SECRET_OPENAI_API_KEY": "k-1"}]
)
def test_the_library_for_models_is_loaded_before_the_first_call(tmp_path: Path, environ: dict[str, str]) -> None:
    pytest.importorskip(LIBRARY)
    server = SyncServerProcess(tmp_path, {"WEFT_TOKEN": "off", **environ})
    try:
        until = time.monotonic() + 60
        while not has_loaded(server):
            assert time.monotonic() < until, "no call has been made, and it waits for one"
            time.sleep(0.1)
    finally:
        assert server.stop() == 0


def test_without_a_model_it_takes_no_memory(tmp_path: Path) -> None:
    server = SyncServerProcess(tmp_path, {"WEFT_TOKEN": "off"})
    try:
        time.sleep(5)
        assert not has_loaded(server)
    finally:
        assert server.stop() == 0


async def test_the_event_loop_does_not_wait_for_a_library_that_is_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(LIBRARY)
    models = ModelClient(GuardedClient(), Endpoints({"DEV": "http://127.0.0.1:9/v1"}), {})

    def slowly(name: str) -> None:
        time.sleep(0.5)

    monkeypatch.setattr("executor.llm.client.import_module", slowly)
    beginning = asyncio.create_task(models._begin())
    turns = 0
    while not beginning.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 10
    await beginning
    await models.close()
