"""Runs made from runs: from a block, from an event, of one node; and moving a run to another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, new_key, present

if TYPE_CHECKING:
    from server.client.answers import ForkAccepted, MigrateAnswer, RerunPreview, RetryAccepted, RunAccepted


class Lifecycle:
    """`rerun`, `fork`, `retry` and `migrate` of `/api/runs/{id}`."""

    @call
    def rerun(
        self, run: str, start: str | None = None, *, input: Any = None, idempotency_key: str | None = None
    ) -> Call[RunAccepted]:
        """Start a new run that reuses the results before block `start`; without `start` everything runs again. `input`
        defaults to that of the run."""
        body = present(input=input) | ({} if start is None else {"from": start})
        return Call("POST", "/api/runs/{id}/rerun", (run,), body=body, key=idempotency_key or new_key())

    @call
    def rerun_preview(self, run: str, start: str) -> Call[RerunPreview]:
        """Return the blocks that `rerun` would reuse, run again and skip."""
        return Call("GET", "/api/runs/{id}/rerun", (run,), {"from": start})

    @call
    def fork(
        self, run: str, seq: int, outputs: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> Call[ForkAccepted]:
        """Start a new run that continues from event `seq` of this one, with these outputs, by node key, in place of the
        recorded ones."""
        body = {"seq": seq, "outputs": dict(outputs or {})}
        return Call("POST", "/api/runs/{id}/fork", (run,), body=body, key=idempotency_key or new_key())

    @call
    def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> Call[RetryAccepted]:
        """Run one node again: the next attempt of an open run now, or a new run if it has ended; `how` shows which."""
        path = "/api/runs/{id}/nodes/{key}/retry"
        return Call("POST", path, (run, key), body={}, key=idempotency_key or new_key())

    @call
    def migrate(self, run: str, version: int) -> Call[MigrateAnswer]:
        """Move an open run to another version of its workflow. ApiError 409: it does not fit; `conflicts` of `problem`
        are the reasons."""
        return Call("POST", "/api/runs/{id}/migrate", (run,), body={"version": version})
