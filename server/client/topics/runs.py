"""Runs: start, read, cancel, signal and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, new_key, present

if TYPE_CHECKING:
    from server.client.answers import (
        CacheCleared,
        Cancelled,
        RunAccepted,
        RunDeleted,
        RunDetail,
        RunDocument,
        RunGraph,
        RunPage,
        SignalAccepted,
        SignalList,
    )


class Runs:
    """`/api/runs`, `/api/workflows/{name}/runs`, `/api/cache`."""

    @call
    def start(
        self,
        workflow: str | Mapping[str, Any],
        input: Any = None,
        *,
        trigger: str | None = None,
        version: int | None = None,
        stop_after: str | None = None,
        priority: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[RunAccepted]:
        """Start a run of a stored workflow by its name (without `version` the active one), or of a document.

        `stop_after`: id of the last block to run; `priority` from -10 to 10, in place of that of the workflow. Without
        an `idempotency_key` the call makes one of its own, so a lost answer never starts a second run. With your own
        key neither does a program that restarts and repeats the call; `created` is then false.
        """
        key = idempotency_key or new_key()
        body = present(input=input, trigger=trigger, version=version, stop_after=stop_after, priority=priority)
        if isinstance(workflow, str):
            return Call("POST", "/api/workflows/{name}/runs", (workflow,), body=body, key=key)
        return Call("POST", "/api/runs", body={"document": workflow, **body}, key=key)

    @call
    def runs(
        self,
        *,
        workflow: str | None = None,
        draft: str | None = None,
        parent: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        counts: bool = False,
    ) -> Call[RunPage]:
        """List runs, newest first; `next` is the `before` of the following page. `parent`: those that this run started;
        `counts`: also the number of runs by status, which takes longer."""
        params = present(
            workflow=workflow, draft=draft, parent=parent, status=status, before=before, limit=limit, counts=counts
        )
        return Call("GET", "/api/runs", params=params)

    @call
    def get_run(self, run: str, *, wait_s: float | None = None) -> Call[RunDetail]:
        """The run with its nodes, variables and waits. `wait_s`: first wait so many seconds, at most 60, until it has
        ended or only an answer or a signal can move it."""
        return Call("GET", "/api/runs/{id}", (run,), present(wait=wait_s), wait_s=wait_s or 0)

    @call
    def delete_run(self, run: str) -> Call[RunDeleted]:
        """Delete a run with the runs that it started. ApiError 409: it cannot be deleted yet."""
        return Call("DELETE", "/api/runs/{id}", (run,), body={})

    @call
    def run_document(self, run: str) -> Call[RunDocument]:
        """The document that the run was made from."""
        return Call("GET", "/api/runs/{id}/document", (run,))

    @call
    def run_plan(self, run: str, *, form: str = "json", expanded: bool = False) -> Call[str]:
        """The plan of the run as text. `form`: json, text, dot or mermaid."""
        params = present(format=form, expanded=True if expanded else None)
        return Call("GET", "/api/runs/{id}/plan", (run,), params, reads="text")

    @call
    def graph(self, run: str) -> Call[RunGraph]:
        """Nodes and edges with their states, for drawing."""
        return Call("GET", "/api/runs/{id}/graph", (run,))

    @call
    def cancel(self, run: str, reason: str = "", *, now: bool = False) -> Call[Cancelled]:
        """ApiError 409: it had ended already, or was failing."""
        return Call("POST", "/api/runs/{id}/cancel", (run,), body={"reason": reason, "now": now})

    @call
    def signal(
        self,
        run: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
    ) -> Call[SignalAccepted]:
        """Send a message to a run. Without a `dedupe_key` the call makes one of its own, so that a lost answer never
        sends it twice; `new` is false if the key was used before in this run."""
        body = present(payload=payload, correlation=correlation, dedupe_key=dedupe_key, by=by)
        key = new_key() if dedupe_key is None else None
        return Call("POST", "/api/runs/{id}/signals/{name}", (run, name), body=body, key=key)

    @call
    def signals(
        self,
        run: str,
        *,
        name: str | None = None,
        correlation: str | None = None,
        received_after: int | None = None,
        limit: int = 200,
    ) -> Call[SignalList]:
        """List the signals of a run in order of arrival, including those that a wait received. `received_after`: Unix
        milliseconds."""
        params = present(name=name, correlation=correlation, received_after=received_after, limit=limit)
        return Call("GET", "/api/runs/{id}/signals", (run,), params)

    @call
    def clear_cache(self, workflow: str | None = None) -> Call[CacheCleared]:
        """Delete cached results: all, or those of runs of one workflow."""
        return Call("DELETE", "/api/cache", params=present(workflow=workflow))
