"""What this server could not begin is not the other side's failure and costs no attempt."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpcore
import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import BlockError, is_exhausted
from executor.kernel.process.threads import FunctionThreads
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.support.endpoints import answer, http


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Not one more file or socket can be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_dial_without_descriptors_is_not_begun() -> None:
    async with http(lambda request: answer(200)) as service:
        before = GuardedClient([service.place])
        await before.request("GET", service.url)  # libraries are files, and loaded when they are needed first
        await before.close()
        client = GuardedClient([service.place])
        try:
            with no_descriptors(), pytest.raises(BlockError) as caught:
                await client.request("GET", service.url)
            error = caught.value
            assert (error.code, error.retryable, error.deferred) == ("out_of_resources", True, "not_begun")
            assert (await client.request("GET", service.url)).status == 200
        finally:
            await client.close()


async def test_runs_do_not_fail_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dial = httpcore.AnyIOBackend.connect_tcp
    refused = 0

    async def scarce(self: Any, *given: Any, **more: Any) -> Any:
        nonlocal refused
        if refused < 6:  # more than there are attempts
            refused += 1
            raise httpcore.ConnectError("All connection attempts failed") from OSError(errno.EMFILE, "Too many")
        return await dial(self, *given, **more)

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", scarce)
    policy = {"retry": {"max_attempts": 1, "initial_ms": 5, "max_ms": 50}}
    async with http(lambda request: answer(200)) as service:
        sandbox = Sandbox(threads=1)
        services = Services(sandbox=sandbox, http=GuardedClient([service.place]))
        store = SQLiteStore(tmp_path / "weft.db")
        engine = await Engine.open(store, registry=Registry.load(sandbox=sandbox), services=services)
        try:
            call = {"type": "http", "params": {"url": service.url, "method": "POST"}, "policy": policy}
            document = {
                "format": "weft/1",
                "blocks": {"start": {"type": "start"}, "call": call},
                "edges": [{"source": "start", "target": "call"}],
            }
            view = await engine.run(document, timeout_s=100)
            assert (view.status, len(service.seen), refused) == ("succeeded", 1, 6)
        finally:
            await engine.close(grace_s=1)


async def test_a_thread_that_cannot_start_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", none_left)
    threads = FunctionThreads()
    with pytest.raises(BlockError) as caught:
        await threads.call(lambda: None, function="f", about="")
    assert (caught.value.code, caught.value.deferred, threads.held()) == ("out_of_resources", "not_begun", [])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENFILE, ""), True),
        (MemoryError(), True),
        (ExceptionGroup("all", [OSError(errno.ECONNREFUSED, ""), OSError(errno.ENOMEM, "")]), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), False),
        (ValueError(), False),
    ],
)
def test_what_counts_as_exhausted(error: BaseException, expected: bool) -> None:
    outer = httpcore.ConnectError("no connection")
    outer.__cause__ = error
    assert is_exhausted(outer) is is_exhausted(error) is expected
