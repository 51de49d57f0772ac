"""Workflows: numbered versions of a document, of which one is active.

28. Of the versions of a workflow one is active: the one stored last, or an older one that was stored or activated
    again. It is what runs where no version is named. Its triggers are written in the transaction that makes it active.
29. `delete_workflow` takes the active version, schedules and webhooks of a name in one transaction, and only while no
    run of it is open. The versions stay for the runs that ended; the next one stored under the name counts on from
    them. `delete_orphans` takes them when the last run of the name is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from executor.store.base import WorkflowRow
    from executor.store.triggers import Declared


class Stored(Struct, frozen=True):
    """The active version as it is now. `created`: it is a new one. `activated`: it was not active before; `replaced`:
    the version that was."""

    row: WorkflowRow
    created: bool
    activated: bool
    replaced: int | None = None


class LastRun(Struct, frozen=True):
    """The run of a workflow that was created last."""

    id: str
    version: int | None
    status: str
    created_at_ms: int
    finished_at_ms: int | None


class WorkflowHead(Struct, frozen=True):
    """A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version; `newest` is
    the highest version, `versions` their number."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    activated_at_ms: int
    newest: int
    versions: int
    last_run: LastRun | None = None


class VersionRow(Struct, frozen=True):
    """A version without its document."""

    version: int
    hash: str
    created_at_ms: int


class DeletedWorkflow(Struct, frozen=True):
    """What went with a workflow. `open_runs` over 0: nothing did."""

    open_runs: int
    schedules: int = 0
    webhooks: int = 0


class WorkflowStore(Protocol):
    """The part of a Store that this topic adds."""

    async def put_workflow(
        self, name: str, document: bytes, hash: str, now_ms: int, declared: Declared | None = None
    ) -> Stored:
        """The next version of `name`, or the existing version with this hash; it is the active one from now on.
        `declared`: the triggers of the document, which take the place of those of the version that was active; None
        leaves them."""

    async def activate_workflow(
        self, name: str, version: int, now_ms: int, declared: Declared | None = None
    ) -> Stored | None:
        """As `put_workflow` with the document of `version`. None: there is no such workflow or version."""

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowRow | None:
        """The active version without a number; with one also a version of a workflow that was deleted."""

    async def list_workflows(self) -> list[WorkflowRow]:
        """The active version of each, by name."""

    async def get_head(self, name: str) -> WorkflowHead | None:
        """None: no such workflow, or it was deleted."""

    async def list_heads(self) -> list[WorkflowHead]:
        """By name. Costs a look into an index for each, however many runs there are."""

    async def list_versions(self, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
        """Newest first, below `before`; [] for a workflow that was deleted."""

    async def delete_workflow(self, name: str) -> DeletedWorkflow | None:
        """See rule 29. Drafts of it are based on nothing from then on. None: there is no such workflow."""
