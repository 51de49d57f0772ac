"""The server itself, what agents remember, what steps used, upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        EnvNames,
        GcAccepted,
        GcJob,
        Health,
        MemoryForgotten,
        MemoryList,
        MemoryTurns,
        ServerStats,
        UsagePage,
        Version,
    )


class Server:
    """`/healthz`, `/readyz`, `/api/version`, `/api/env`, `/api/upkeep`."""

    @call
    def health(self) -> Call[Health]:
        """It reads its database. ApiError 503: it does not; sent once."""
        return Call("GET", "/healthz", again=False)

    @call
    def ready(self) -> Call[Health]:
        """It writes to its database as well. ApiError 503 or 507: why it does not; sent once."""
        return Call("GET", "/readyz", again=False)

    @call
    def server_version(self) -> Call[Version]:
        """Return the version of weft on the server."""
        return Call("GET", "/api/version")

    @call
    def stats(self) -> Call[ServerStats]:
        """Return the work that is open in its database, and the counts of the answering process since its start."""
        return Call("GET", "/api/stats")

    @call
    def metrics(self) -> Call[str]:
        """Numbers of the process and of its database, in the text format of Prometheus."""
        return Call("GET", "/metrics", reads="text")

    @call
    def openapi(self) -> Call[dict[str, Any]]:
        """The description of this API."""
        return Call("GET", "/api/openapi.json")

    @call
    def env(self) -> Call[EnvNames]:
        """Names of the environment that documents may read, and which do; no values."""
        return Call("GET", "/api/env")

    @call
    def gc(self, *, older_than_s: float | None = None, keep: int = 0, dry_run: bool = False) -> Call[GcAccepted]:
        """Start to delete old runs. Returns the job, or the one already in progress."""
        body = present(older_than_s=older_than_s, keep=keep, dry_run=dry_run)
        return Call("POST", "/api/upkeep/gc", body=body)

    @call
    def gc_job(self, id: str) -> Call[GcJob]:
        """Return the state of a deletion job: counts of what it has deleted so far, or would delete."""
        return Call("GET", "/api/upkeep/gc/{id}", (id,))


class Memory:
    """The memory of agents: `/api/memory`."""

    @call
    def memories(self, workflow: str | None = None) -> Call[MemoryList]:
        """Conversations, the latest first."""
        return Call("GET", "/api/memory", params=present(workflow=workflow))

    @call
    def memory(self, key: str, *, workflow: str = "", scope: str = "") -> Call[MemoryTurns]:
        """Return the turns of one conversation: of a workflow, or of a scope."""
        return Call("GET", "/api/memory/turns", params={"key": key, "workflow": workflow, "scope": scope})

    @call
    def delete_memory(self, key: str, *, workflow: str = "", scope: str = "") -> Call[MemoryForgotten]:
        """Delete the turns of one conversation. Returns how many there were."""
        return Call("DELETE", "/api/memory", params={"key": key, "workflow": workflow, "scope": scope})


class Usage:
    """`/api/usage`."""

    @call
    def usage(
        self, *, by: str = "day", first: str | None = None, to: str | None = None, workflow: str | None = None
    ) -> Call[UsagePage]:
        """Return tokens and costs by day, workflow or model, of the days (such as 2026-11-01, in UTC) from `first` to
        `to`."""
        params = present(to=to, workflow=workflow, by=by) | ({} if first is None else {"from": first})
        return Call("GET", "/api/usage", params=params)
