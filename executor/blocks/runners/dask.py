"""`policy.runner: dask`: functions on a cluster of dask.distributed.

The client has a thread and an event loop of its own. A lost cluster or worker is `Lost`; weft submits again as the plan
demands, and the scheduler repeats nothing (`cluster.Claims`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final

import msgspec

from executor.blocks.runners.call import Call, Listener, Report, decode_answer, encode, not_called, result_of
from executor.errors import BlockError, Lost
from executor.kernel.process.extras import install

Client = Any  # distributed.Client; an extra, without types for most of its methods

log = logging.getLogger("weft.runners")

CONNECT_S: Final = 10.0
LOST: Final = "the Dask worker of the attempt was lost"
CANCEL_LOOKS_MAX: Final = 200
CANCEL_LOOK_S: Final = 0.05
Key = tuple[str, str, int]


class _Waiting:
    """A call that was submitted. `begun` is set when its function is being called, or when it has ended; `is_called` is
    true from the moment before it may be called."""

    __slots__ = ("begun", "is_called", "is_lost", "listener", "working")

    def __init__(self, listener: Listener, working: asyncio.Future[bytes]) -> None:
        self.listener = listener
        self.working = working
        self.begun = asyncio.Event()
        self.is_called = False
        self.is_lost = False

    def lost(self, message: str, *, together: bool = False) -> Lost | BlockError:
        return Lost(message, together=together) if self.is_called else not_called(message)


class DaskRunner:
    """`address` of the scheduler: `tcp://host:8786`, `tls://…`. Belongs to the event loop of its first call."""

    def __init__(self, address: str, *, connect_s: float = CONNECT_S) -> None:
        self._address = address
        self._connect_s = connect_s
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._calls: dict[Key, _Waiting] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(self, call: Call, listener: Listener) -> Any:
        """See `blocks.runners.call.Runner`. The time limit begins with the function, not with the wait for a worker."""
        with listener.waiting():
            client = await self._connected()
        key = (f"weft-{call.function}", call.idempotency_key, call.attempt)
        submitted = asyncio.run_coroutine_threadsafe(
            _outcome(client, encode(call), key, _topic(client)),
            client.loop.asyncio_loop,
        )
        working = asyncio.wrap_future(submitted)
        waiting = self._calls[key] = _Waiting(listener, working)
        working.add_done_callback(lambda _: waiting.begun.set())
        try:
            with listener.waiting():
                await waiting.begun.wait()
            return result_of(decode_answer(await working))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not waiting.is_lost or (task is not None and task.cancelling()):
                raise
            listener.log(f"({LOST})")
            raise waiting.lost(LOST) from None
        except Lost as error:
            listener.log(f"({error.message})")
            if error.together:
                self._drop(client)
            raise waiting.lost(error.message, together=error.together) from error
        finally:
            working.cancel()
            if self._calls.get(key) is waiting:
                del self._calls[key]

    async def close(self) -> None:
        """Calls under way are cancelled before."""
        if self._client is not None:
            self._drop(self._client)

    async def _connected(self) -> Client:
        """Raises BlockError: the cluster cannot be reached now, or its library is not installed."""
        self._loop = asyncio.get_running_loop()
        async with self._connecting:
            client = self._client
            if client is not None and client.status == "running":
                return client
            if client is not None:
                self._drop(client)
            try:
                self._client = await asyncio.to_thread(self._connect)
            except ImportError as error:
                raise BlockError(
                    f"the library of Dask is not installed: {error}",
                    code="runner_unavailable",
                    retryable=False,
                    hint=install("dask"),
                ) from error
            except Exception as error:
                raise BlockError(
                    f"the Dask cluster {self._address} cannot be reached: {error}",
                    code="runner_unavailable",
                    deferred="not_begun",
                    hint="WEFT_DASK is the address of its scheduler; weft must be installed there and on the workers",
                ) from error
            return self._client

    def _connect(self) -> Client:
        """Connect. Runs in a thread."""
        import distributed

        from executor.blocks.runners.cluster import Claims

        logging.getLogger("distributed.client").addFilter(is_news)
        made: Any = distributed.Client
        client = made(self._address, timeout=self._connect_s, set_as_default=False, name="weft")
        try:
            client.register_plugin(Claims())
            client.subscribe_topic(_topic(client), self._event)
        except BaseException:
            _close(client)
            raise
        return client

    def _drop(self, client: Client) -> None:
        if self._client is client:
            self._client = None
            asyncio.get_running_loop().run_in_executor(None, _close, client)

    def _event(self, event: tuple[float, dict[str, Any]]) -> None:
        """Handle an event. Runs in the thread of the client."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._received, event[1])

    def _received(self, message: dict[str, Any]) -> None:
        name, idempotency_key, attempt = message["key"]
        waiting = self._calls.get((name, idempotency_key, attempt))
        if waiting is None:
            return
        if message.get("begun"):
            waiting.is_called = True
            if self._client is not None:  # if this does not arrive, the call is lost with the scheduler
                permitting = _permit(self._client, message["key"])
                asyncio.run_coroutine_threadsafe(permitting, self._client.loop.asyncio_loop)
            waiting.begun.set()
            return
        if message.get("lost"):
            waiting.is_lost = True
            waiting.working.cancel()
            return
        report = msgspec.convert(message["report"], Report)
        if report.kind == "log":
            waiting.listener.log(report.value)
        elif report.kind == "emit":
            waiting.listener.emit(report.value)


def is_news(record: logging.LogRecord) -> bool:
    """Drop the stack of a client that is closed while it tries to connect again: the loss is logged already."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


def _topic(client: Client) -> str:
    return f"weft-{client.id}"


async def _outcome(client: Client, call: bytes, key: Key, topic: str) -> bytes:
    """Return an encoded `Answer`. Runs in the loop of the client. Raises Lost."""
    from distributed.client import FutureCancelledError

    from executor.blocks.runners.cluster import BEGUN_BEFORE, execute

    future = client.submit(execute, call, key, topic, key=key, pure=False)
    try:
        answer: bytes = await future._result()
    except FutureCancelledError as error:
        raise Lost(f"the Dask cluster was lost: {error.reason}", together=True) from error
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await _cancel(client, future, key)
        raise
    except Exception as error:
        raise Lost(f"{LOST}: {type(error).__name__}: {error}") from error
    finally:
        future.release()
    if answer == BEGUN_BEFORE:
        raise Lost(LOST)
    return answer


async def _permit(client: Client, key: list[Any]) -> None:
    from executor.blocks.runners.cluster import PERMIT

    with contextlib.suppress(Exception):
        await getattr(client.scheduler, PERMIT)(key=key)


async def _cancel(client: Client, future: Any, key: Key) -> None:
    """Cancel a task. It arrives some time after it was submitted, and a cancel that arrives before has no effect."""
    from executor.blocks.runners.cluster import KNOWN

    for _ in range(CANCEL_LOOKS_MAX):
        if await getattr(client.scheduler, KNOWN)(key=list(key)):
            break
        await asyncio.sleep(CANCEL_LOOK_S)
    await client._cancel([future], force=True)


def _close(client: Client) -> None:
    try:
        client.close(timeout=5)
    except Exception as error:
        log.debug("a client of Dask did not close: %r", error)
