"""Rows of schedules and webhooks, and what became of each fire time and delivery. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from executor.kernel.store.alerts import AlertRow
from executor.kernel.store.rows import NewRun, RunRow

Overlap = Literal["skip", "allow", "queue"]
CatchUp = Literal["one", "none", "all"]
Origin = Literal["document", "api"]
Auth = Literal["hmac", "github", "token", "none"]
Respond = Literal["immediate", "run"]
FireOutcome = Literal["started", "skipped", "queued", "missed", "failed"]
FIRES_KEPT: Final = 100
DELIVERIES_KEPT: Final = 50
REASONS_KEPT: Final = 50  # for a refusal; there are about a dozen
DIGEST_CHARS: Final = 32  # of those that are remembered longest: 128 bits
DELIVERY_KEPT_MS: Final = 24 * 3_600_000  # a copy that comes within a day is recognised


class ScheduleRow(Struct, frozen=True):
    """A schedule. `version` is None for the active one; `trigger` is None for the workflow's own choice. `input` is
    JSON. `declared` is the `enabled` of the document, None for schedules of the API. `next_run_at_ms` is None if it is
    switched off, or its day never comes, or its time zone was not known. `queued_at_ms` is a fire time that waits for
    an open run to end. `made_by` is who made or last changed it, None if that was a server without users."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    cron: str
    tz: str
    input: bytes
    enabled: bool
    declared: bool | None
    overlap: Overlap
    catch_up: CatchUp
    origin: Origin
    next_run_at_ms: int | None
    created_at_ms: int
    updated_at_ms: int
    queued_at_ms: int | None = None
    last_run_at_ms: int | None = None
    last_run_id: str | None = None
    error: str | None = None
    made_by: str | None = None


class FireRow(Struct, frozen=True):
    """The outcome of the fire time `due_ms`, at `at_ms`."""

    due_ms: int
    at_ms: int
    outcome: FireOutcome
    run_id: str | None = None
    error: str | None = None


class Fire(Struct, frozen=True):
    """One fire time of a schedule that is to be handled.

    expects         due: it is switched on and `next_run_at_ms` is `expected_ms`; queued: `queued_at_ms` is that, and no
                    run is open; None if a client asked for a run, which starts whatever else is open
    next_run_at_ms  where `due` moves the schedule
    due_ms          the fire time a run is for; of several missed ones the last
    run             None if there is none, with the reason in `error`, or if the fire time was missed
    alerts          alerts for operators about it
    """

    schedule_id: str
    expects: Literal["due", "queued"] | None
    expected_ms: int
    next_run_at_ms: int | None
    due_ms: int
    now_ms: int
    overlap: Overlap
    run: NewRun | None = None
    error: str | None = None
    alerts: tuple[AlertRow, ...] = ()


class Fired(Struct, frozen=True):
    outcome: FireOutcome
    run: RunRow | None = None


class WebhookRow(Struct, frozen=True):
    """`secret_env` names the environment's value that is the secret; without it the secret follows from `generation`, a
    random number.
    `timeout_ms` is for respond `run`; `headers` is a JSON list of the names that are passed on besides the usual ones.
    For `version`, `trigger` and `declared` see ScheduleRow."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    auth: Auth
    secret_env: str | None
    generation: int
    respond: Respond
    timeout_ms: int
    headers: bytes
    enabled: bool
    declared: bool | None
    origin: Origin
    created_at_ms: int
    updated_at_ms: int
    last_run_at_ms: int | None = None
    last_run_id: str | None = None


class DeliveryRow(Struct, frozen=True):
    """`id` is the sender's name for it, or ours; `digest` is of the signature, if there is one."""

    webhook_id: str
    id: str
    digest: str | None
    at_ms: int
    run_id: str


class RefusalRow(Struct, frozen=True):
    """Requests that were refused for one reason, the code `outcome`. `delivery` and `run_id` (of a copy, the run that
    the first one has started) are of the last of them."""

    webhook_id: str
    outcome: str
    count: int
    first_at_ms: int
    last_at_ms: int
    delivery: str | None = None
    run_id: str | None = None

    def after(self, earlier: RefusalRow | None) -> RefusalRow:
        """Both together."""
        if earlier is None:
            return self
        return replace(self, count=earlier.count + self.count, first_at_ms=earlier.first_at_ms)


class Declared(Struct, frozen=True):
    """All triggers of a document that are rows. Which version they are of is known when it is stored."""

    schedules: tuple[ScheduleRow, ...] = ()
    webhooks: tuple[WebhookRow, ...] = ()

    def of_version(self, version: int) -> Declared:
        return Declared(
            tuple(replace(row, version=version) for row in self.schedules),
            tuple(replace(row, version=version) for row in self.webhooks),
        )
