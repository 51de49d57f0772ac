"""The journals of runs, as methods of both clients: events, states, nodes, lanes, comparisons, kept runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from server.client.call import Call, route

if TYPE_CHECKING:
    from server.client import answers


class HistoryCalls:
    """Calls about the journals of runs."""

    @route("GET", "/api/runs/{id}/events")
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
    ) -> Call[answers.EventPage]:
        """Return one page of the journal after seq `after`; `next` is the `after` of the following page. `type`: only
        these types, separated by commas; `since`: Unix milliseconds; outputs over `preview` bytes are cut."""

    @route("GET", "/api/runs/{id}/state")
    def state(self, run: str, seq: int | None = None) -> Call[answers.RunState]:
        """The run as it stood after event `seq`: nodes, waits, containers, variables."""

    @route("GET", "/api/runs/{id}/lane")
    def lane(self, run: str, *, after: int | None = None, before: int | None = None) -> Call[answers.Lane]:
        """The calls of a durable function, at most 1,000: those that events after `after` are about, and that began
        before event `before`."""

    @route("GET", "/api/runs/{id}/why")
    def why(self, run: str, node: str | None = None, seq: int | None = None) -> Call[answers.RunWhy]:
        """Explain the state of nodes, as it stood after event `seq`."""

    @route("GET", "/api/runs/{id}/diff/{other}")
    def diff(self, run: str, other: str) -> Call[answers.RunDiff]:
        """Return where two runs differ; `same` is true if nothing differs but times and ids."""

    @route("POST", "/api/runs/{id}/keep")
    def keep(self, run: str, note: str = "") -> Call[answers.KeptView]:
        """Keep a run that has ended as a test; it is deleted by no age. `note`: what it tests."""

    @route("DELETE", "/api/runs/{id}/keep")
    def drop_kept(self, run: str) -> Call[answers.KeepDropped]:
        """Keep a run no longer."""

    @route("GET", "/api/workflows/{name}/loom")
    def loom(
        self, name: str, *, since: int | None = None, until: int | None = None, limit: int | None = None
    ) -> Call[answers.Loom]:
        """The executions, times and exits of each block in each of the last runs, created between these times."""

    @route("GET", "/api/workflows/{name}/kept")
    def kept(self, name: str) -> Call[answers.KeptRuns]:
        """The runs of a workflow that are kept as tests."""

    @route("POST", "/api/workflows/{name}/backtest")
    def backtest(
        self,
        name: str,
        document: Mapping[str, Any] | None = None,
        *,
        draft: str | None = None,
        version: int | None = None,
        kept: bool = False,
        last: int = 50,
        before: str | None = None,
        model: str | None = None,
        call_models: Mapping[str, Any] | None = None,
        rows: Sequence[Mapping[str, Any]] | None = None,
        score: Mapping[str, Any] | None = None,
    ) -> Call[answers.Backtest]:
        """Play a document, the draft with an id, or a version (by default the active one) against kept runs or the last
        ones, or on rows. Nothing outside is called but models with `call_models`. One answer has at most 50 runs;
        `next` is the `before` of the following one."""

    @route("GET", "/api/runs/{id}/nodes/{key}")
    def node(
        self,
        run: str,
        key: str,
        *,
        attempt: int | None = None,
        seq: int | None = None,
        preview: int | None = None,
    ) -> Call[answers.NodeShown]:
        """Return input, output and steps of a node at its last attempt, or at `attempt`, as it stood after event `seq`;
        values over `preview` bytes are cut."""

    @route("GET", "/api/runs/{id}/nodes/{key}", reads="value")
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
