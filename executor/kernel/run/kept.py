"""Rows beside the journal that attempts write for later ones: checkpoints, cached outputs, and the memory of agents.

None of them decides anything, so they are no events. A checkpoint is written only by the owner of the run, and only
for an attempt that is under way: an abandoned thread must not overwrite what a later attempt keeps. The key of a
cached output is a hash of everything that could make it another one; of secrets it has only the names, so an output
outlives the secret it was fetched with, and `weft cache clear` deletes it. Memory is read and written inside steps,
so a later attempt gets what the first one read; a turn that is there is not written a second time.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson
from msgspec.structs import replace

from compiler.plan import Cache, Node
from executor.errors import BlockError, StoreError
from executor.kernel.run.parts import Parts
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.contents import files_in, names_files
from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.values.payload import Bound
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.redact import MARK
from executor.kernel.values.schema import check_output

T = TypeVar("T")
log = logging.getLogger("weft.checkpoints")

SIZE_MAX_BYTES: Final = 1024 * 1024


class _Kept:
    """`row` is the run as it was claimed."""

    def __init__(self, row: RunRow, parts: Parts) -> None:
        self._run_id = row.id
        self._workflow = row.workflow
        self._epoch = row.epoch
        self._store = parts.store
        self._clock = parts.clock
        self._redactor = parts.redactor
        self._sandbox = parts.services.sandbox


class Checkpoints(_Kept):
    """The checkpoints of one run under one lease."""

    async def last(self, key: str) -> Any:
        """Return the last checkpoint of this node key, or None. Raises BlockError if the database cannot be read."""
        row = await self.with_retries(lambda: self._store.get_checkpoint(self._run_id, key))
        return None if row is None else orjson.loads(row.data)

    def encode(self, value: Any) -> bytes:
        """JSON without secrets. Raises BlockError: it is none, or too large."""
        data = self._redactor.redact_json(encode_payload(value))
        if len(data) > SIZE_MAX_BYTES:
            raise BlockError(
                f"the checkpoint has {len(data)} bytes; the limit is {SIZE_MAX_BYTES}",
                code="checkpoint_too_large",
                retryable=False,
                hint="store the position (a number, the name of a file), not all results so far",
            )
        return data

    async def put(self, key: str, attempt: int, data: bytes) -> None:
        """Store the checkpoint in one try. Raises Fenced, StoreError."""
        row = CheckpointRow(self._run_id, key, attempt, self._clock.now_ms(), data)
        await self._store.put_checkpoint(self._epoch, row)

    async def with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Both can be asked for again: writing a checkpoint twice is writing it once."""
        what, failed = f"a checkpoint of run {self._run_id}", "the database could not be used for a checkpoint"
        return await with_retries(ask, what=what, failed=failed, log=log)


# More than this is kept only in the journal of its run.
OUTPUT_MAX_BYTES: Final = 1024 * 1024


def schema_sig(schema: Mapping[str, Any] | None) -> str:
    """sha256 of the canonical JSON of an output schema; '' without one."""
    return "" if schema is None else hashlib.sha256(_canonical(schema)).hexdigest()


def cache_key(cache: Cache, node: Node, *, run_id: str, workflow: str, values: Any, secrets: Sequence[str] = ()) -> str:
    """Return the cache key. `values` is the value of the key expression, or the resolved params, with the names of
    secrets in place of them; `secrets` are these names."""
    scope = {"run": [run_id, node.block], "workflow": [workflow, node.block], "global": []}[cache.scope]
    names = sorted(str(ref.path[0]) for ref in node.needs if ref.kind == "env")
    own_key = cache.key is not None
    # The form of the key: another one when it changes, and nothing older is found. In form 1 all secrets looked alike.
    form = [2, secrets] if secrets or MARK.encode() in _canonical(values) else [1]
    parts = [
        form[0],
        cache.scope,
        scope,
        node.type,
        cache.version,
        schema_sig(node.output_schema),
        own_key,
        [] if own_key else names,
        values,
        *form[1:],
    ]
    return hashlib.sha256(_canonical(parts)).hexdigest()


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def plain(value: Any) -> Any:
    """Resolved params as JSON: programs and expressions with the values they read."""
    match value:
        case Bound():
            return {"$code": value.source, "values": dict(value.values), "texts": dict(value.texts)}
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value


class ResultCache(_Kept):
    """For the nodes of one run that have a `policy.cache`. Whatever goes wrong here is a miss: the block runs."""

    def key(self, node: Node, values: Any) -> str:
        """Return the cache key. `values` are those of the key expression, or the resolved params."""
        assert node.policy.cache is not None
        clean, secrets = self._redactor.named(plain(values))
        return cache_key(
            node.policy.cache, node, run_id=self._run_id, workflow=self._workflow, values=clean, secrets=secrets
        )

    async def find(self, node: Node, key: str) -> CacheRow | None:
        """Return a cached output that still fits, or None."""
        try:
            row = await self._store.find_cached(key, self._clock.now_ms())
            files = files_in(row.output) if row is not None else []
            if files and len(await self._store.hold_files(files, self._run_id, self._clock.now_ms())) < len(files):
                return None  # a file was deleted with the run that held it
        except StoreError as error:
            log.warning("block %s: the cache could not be read: %s", node.block, error)
            return None
        if row is None or row.schema_sig != schema_sig(node.output_schema):
            return None
        try:
            await check_output(node, row.output, self._sandbox.matches)
        except BlockError as error:
            log.warning("block %s: a cached output is ignored: %s", node.block, error)
            return None
        return row

    def row(self, node: Node, key: str, output: bytes, route: str | None) -> CacheRow | None:
        """Return the row to store with the success, or None if it is too large."""
        cache = node.policy.cache
        assert cache is not None
        if len(output) > OUTPUT_MAX_BYTES:
            return None
        now_ms = self._clock.now_ms()
        return CacheRow(
            key=key,
            scope=cache.scope,
            workflow=self._workflow,
            run_id=self._run_id,
            block=node.block,
            type=node.type,
            schema_sig=schema_sig(node.output_schema),
            route=route,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + cache.ttl_ms,
            output=output,
        )


class StepCache:
    """Implements `StepResults`: the results of a step of a durable function. They are those of a block of type `python`
    with these params; the step takes the place of its id. `body` is the node of the function."""

    def __init__(self, row: RunRow, parts: Parts, body: Node, step: str, params: Any, cache: Cache, schema: Any):
        policy = replace(body.policy, cache=cache)
        self._node = replace(body, block=step, type="python", output_schema=schema, policy=policy)
        self._run_id = row.id
        self._files = parts.files
        self._results = ResultCache(row, parts)
        self._key = self._results.key(self._node, params)

    async def find(self) -> bytes | None:
        row = await self._results.find(self._node, self._key)
        return None if row is None else row.output

    async def row(self, output: bytes) -> CacheRow | None:
        try:
            if names_files(output) and len(await self._files.of_run(self._run_id, output)) < len(files_in(output)):
                return None  # who has the cached output has its files
        except StoreError as error:
            log.warning("step %s: its result is not cached: %s", self._node.block, error)
            return None
        return self._results.row(self._node, self._key, output, "out")


class RunMemory(_Kept):
    """See `executor.kernel.handler.base.Memory`."""

    async def recall(self, scope: str, key: str, turns: int) -> list[list[dict[str, Any]]]:
        conversation = self._conversation(scope, key)
        rows = await self._with_retries(lambda: self._store.recall(conversation, turns))
        return [orjson.loads(row.messages) for row in rows]

    async def remember(self, scope: str, key: str, node: str, messages: Sequence[Mapping[str, Any]]) -> bool:
        conversation = self._conversation(scope, key)
        data = self._redactor.redact_json(orjson.dumps(list(messages)))
        turn = MemoryTurn(f"{self._run_id}:{node}", self._run_id, self._clock.now_ms(), data)
        return await self._with_retries(lambda: self._store.remember(conversation, turn))

    def _conversation(self, scope: str, key: str) -> Conversation:
        """Two keys that differ in a secret are two conversations, and the secret is in neither."""
        label = self._redactor.label
        return Conversation("" if scope else self._workflow, label(scope), label(key))

    async def _with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        what, failed = f"the memory of run {self._run_id}", "the database could not be used for a memory"
        return await with_retries(ask, what=what, failed=failed, log=log)
