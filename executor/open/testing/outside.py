"""Effects of blocks on the outside, written to a file that survives the end of a process.

A test puts an Outside in the place of the mail server, the shop, the ledger: the block, or its fake, records each
effect. `crash_everywhere` compares the recorded effects with a run in which nothing failed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from compiler.catalog import BlockSpec
from executor.blocks.http.client import GuardedClient
from executor.kernel.handler.base import Block, Outcome, StepContext


class Doing(Struct, frozen=True):
    """The attempt that is at work."""

    block: str
    key: str
    idempotency_key: str
    attempt: int


DOING: ContextVar[Doing | None] = ContextVar("weft_testing_doing", default=None)


class Effect(Struct, frozen=True):
    """`what`: any JSON value, as it was recorded. `by`: the attempt that recorded it, or None if no block did."""

    what: Any
    by: Doing | None = None


class _Entry(Effect, frozen=True):
    once: str | None = None


class Outside:
    """Shared by all processes that have it; make one for each test. `folder`: where its file is; without one, that of
    temporary files."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._path = Path(folder or gettempdir(), f"weft-outside-{uuid4().hex}.jsonl")

    def record(self, what: Any, once: str | None = None) -> bool:
        """Record an effect: `what` is any JSON value. `once`: a key, such as `ctx.idempotency_key`; a repeated key has
        no effect (returns False), as with a service that knows the keys of its requests."""
        line = msgspec.json.encode(_Entry(what, DOING.get(), once)) + b"\n"
        with self._locked() as file:
            if once is not None and any(entry.once == once for entry in self._entries()):
                return False
            os.write(file, line)
        return True

    @property
    def effects(self) -> list[Effect]:
        return [Effect(entry.what, entry.by) for entry in self._entries()]

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

    def _entries(self) -> Iterator[_Entry]:
        if self._path.exists():
            yield from (msgspec.json.decode(line, type=_Entry) for line in self._path.read_bytes().splitlines())

    @contextmanager
    def _locked(self) -> Iterator[int]:
        import fcntl  # not on every system

        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


# --- blocks and requests that are written down ---


class Entered:
    """The runs and keys of the attempts that were begun, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, run: str, key: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{run} {key}\n")

    def keys(self) -> set[tuple[str, str]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return {(run, key) for run, _, key in (line.partition(" ") for line in lines)}


class WatchedBlock:
    """The same block, which marks its effects in an Outside as its own."""

    def __init__(self, block: Block, entered: Entered) -> None:
        self._block = block
        self._entered = entered

    @property
    def spec(self) -> BlockSpec:
        return self._block.spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)

    async def run(self, ctx: StepContext) -> Outcome:
        doing = Doing(ctx.block, ctx.key, ctx.idempotency_key, ctx.attempt)
        self._entered.add(ctx.run_id, ctx.key)
        before = DOING.set(doing)
        try:
            return await self._block.run(ctx)
        finally:
            DOING.reset(before)


def watched(blocks: list[Block], entered: Entered) -> Iterator[Block]:
    """Watch the blocks that work: sentinels and inline blocks have no attempts of their own."""
    for block in blocks:
        spec = block.spec
        plain = spec.inline or spec.container or spec.trigger
        yield block if plain else WatchedBlock(block, entered)


class WatchedClient(GuardedClient):
    """Requests that may change something are effects; those with the same Idempotency-Key are one."""

    outside: Outside

    async def request(self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
        answer = await super().request(method, url, headers=headers, **more)
        if method.upper() not in ("GET", "HEAD", "OPTIONS"):
            keys = [value for name, value in (headers or {}).items() if name.lower() == "idempotency-key"]
            self.outside.record({"request": method.upper(), "url": url}, once=keys[0] if keys else None)
        return answer
