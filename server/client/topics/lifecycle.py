"""Runs made of runs: from a block, from an event, of one node; and runs moved to another version."""

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
        """A new run that reuses the results before block `start`; without one everything runs again. `input` is that
        of the run unless there is another."""
        body = present(input=input) | ({} if start is None else {"from": start})
        return Call("POST", "/api/runs/{id}/rerun", (run,), body=body, key=idempotency_key or new_key())

    @call
    def rerun_preview(self, run: str, start: str) -> Call[RerunPreview]:
        """Which blocks `rerun` would reuse, run again and skip."""
        return Call("GET", "/api/runs/{id}/rerun", (run,), {"from": start})

    @call
    def fork(
        self, run: str, seq: int, outputs: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> Call[ForkAccepted]:
        """A new run that continues from event `seq` of this one, with these outputs, by node key, in place of the
        recorded ones."""
        body = {"seq": seq, "outputs": dict(outputs or {})}
        return Call("POST", "/api/runs/{id}/fork", (run,), body=body, key=idempotency_key or new_key())

    @call
    def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> Call[RetryAccepted]:
        """One node again: the next attempt of an open run now, or a new run of one that has ended; `how` says which."""
        path = "/api/runs/{id}/nodes/{key}/retry"
        return Call("POST", path, (run, key), body={}, key=idempotency_key or new_key())

    @call
    def migrate(self, run: str, version: int) -> Call[MigrateAnswer]:
        """Move an open run to another version of its workflow. ApiError 409: it does not fit; `conflicts` of `problem`
        says why."""
        return Call("POST", "/api/runs/{id}/migrate", (run,), body={"version": version})
