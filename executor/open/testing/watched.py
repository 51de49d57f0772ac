"""Blocks and requests of a process that may be killed, written down as they happen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from compiler.catalog import BlockSpec
from executor.blocks.http.client import GuardedClient
from executor.kernel.handler.base import Block, Context, Outcome
from executor.open.testing.outside import DOING, Doing, Outside


class Entered:
    """The attempts that were begun, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, doing: Doing) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, msgspec.json.encode(doing) + b"\n")
        finally:
            os.close(file)

    def keys(self) -> list[str]:
        if not self._path.exists():
            return []
        return [orjson.loads(line)["key"] for line in self._path.read_bytes().splitlines()]


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

    async def run(self, ctx: Context) -> Outcome:
        doing = Doing(ctx.block, ctx.key, ctx.idempotency_key, ctx.attempt)
        self._entered.add(doing)
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
