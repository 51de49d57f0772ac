"""Outputs of one run's nodes that are taken over from earlier runs, or kept for later ones."""

from __future__ import annotations

import logging
from typing import Any

from compiler.plan import Node
from executor.errors import BlockError, StoreError
from executor.kernel.process.clock import Clock
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.store import Store
from executor.kernel.values.cache import OUTPUT_MAX_BYTES, cache_key, plain, schema_sig
from executor.kernel.values.redact import Redactor
from executor.kernel.values.schema import Matches, check_output

log = logging.getLogger("weft.cache")


class ResultCache:
    """For the nodes of one run that have a `policy.cache`. Whatever goes wrong here is a miss: the block runs."""

    def __init__(self, store: Store, row: RunRow, clock: Clock, redactor: Redactor, matches: Matches) -> None:
        self._store = store
        self._run_id = row.id
        self._workflow = row.workflow
        self._clock = clock
        self._redactor = redactor
        self._matches = matches

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
            await check_output(node, row.output, self._matches)
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
