"""The history of a run: events, past states, nodes, differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import EventPage, NodeShown, RunDiff, RunState, RunWhy


class History:
    """`events`, `state`, `nodes`, `why` and `diff` of `/api/runs/{id}`."""

    @call
    def events(
        self,
        run: str,
        after: int = 0,
        limit: int = 1000,
        *,
        node: str | None = None,
        type: str | None = None,
        since: int | None = None,
        preview: int | None = None,
    ) -> Call[EventPage]:
        """Return one page of the journal after seq `after`; `next` is the `after` of the following page. `type`: only
        these types, separated by commas; `since`: Unix milliseconds; outputs over `preview` bytes are cut."""
        params = present(after=after, limit=limit, node=node, type=type, since=since, preview=preview)
        return Call("GET", "/api/runs/{id}/events", (run,), params)

    @call
    def state(self, run: str, seq: int | None = None) -> Call[RunState]:
        """The run as it stood after event `seq`: nodes, waits, containers, variables."""
        return Call("GET", "/api/runs/{id}/state", (run,), present(seq=seq))

    @call
    def why(self, run: str, node: str | None = None, seq: int | None = None) -> Call[RunWhy]:
        """Explain the state of nodes, as it stood after event `seq`."""
        return Call("GET", "/api/runs/{id}/why", (run,), present(node=node, seq=seq))

    @call
    def diff(self, run: str, other: str) -> Call[RunDiff]:
        """Return where two runs differ; `same` is true if nothing differs but times and ids."""
        return Call("GET", "/api/runs/{id}/diff/{other}", (run, other))

    @call
    def node(
        self,
        run: str,
        key: str,
        *,
        attempt: int | None = None,
        seq: int | None = None,
        preview: int | None = None,
    ) -> Call[NodeShown]:
        """Return input, output and steps of a node at its last attempt, or at `attempt`, as it stood after event `seq`;
        values over `preview` bytes are cut."""
        params = present(attempt=attempt, seq=seq, preview=preview)
        return Call("GET", "/api/runs/{id}/nodes/{key}", (run, key), params)

    @call
    def node_value(
        self,
        run: str,
        key: str,
        only: Literal["input", "output"] = "output",
        *,
        attempt: int | None = None,
        seq: int | None = None,
    ) -> Call[Any]:
        """The input or the output of a node alone."""
        params = present(only=only, attempt=attempt, seq=seq)
        return Call("GET", "/api/runs/{id}/nodes/{key}", (run, key), params, reads="value")
