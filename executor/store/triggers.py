"""What starts runs without a person: schedules and webhooks, as the store keeps them.

16. One moment of a schedule starts one run, whoever asks: `fire` names the moment it expects, moves the schedule on and
    creates the run in one transaction; if the moment has gone nothing is written.
17. A delivery starts one run: a delivery with the id or the digest of one before is not stored, and its run is named.
    Nor is one to a webhook that has been changed, switched off or deleted since the request was judged by it. Ids are
    remembered for a day at least; digests of `github`, whose signature has no time in it, for as long as the webhook is
    there and its secret's generation is the same.
18. The triggers of a document are written in the transaction that makes its version the active one. What people set
    (`enabled`) and what happened (`last_run_id`, the secret's generation) outlives a version.
25. Of requests that were refused there is one row for each webhook and reason, and none of a webhook that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from executor.errors import Fenced

if TYPE_CHECKING:
    from executor.store.base import NewRun, RunRow

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
    """`version` None: the active one; `trigger` None: the workflow's own choice. `input` is JSON. `declared` is what
    the document says of `enabled`, None for schedules of the API. `next_run_at_ms` None: it is switched off, or its
    day never comes, or its time zone was not known. `queued_at_ms`: a moment that waits for an open run to end."""

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


class FireRow(Struct, frozen=True):
    """What became of the moment `due_ms`, at `at_ms`."""

    due_ms: int
    at_ms: int
    outcome: FireOutcome
    run_id: str | None = None
    error: str | None = None


class Fire(Struct, frozen=True):
    """One moment of a schedule to be dealt with.

    expects         due: it is switched on and `next_run_at_ms` is `expected_ms`; queued: `queued_at_ms` is that, and no
                    run is open; None: nothing, somebody asked for a run, which starts whatever else is open
    next_run_at_ms  where `due` moves the schedule
    due_ms          the moment a run is for; of several missed ones the last
    run             None: there is none, `error` says why, or the moment was missed
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


def lasts(webhook: WebhookRow) -> bool:
    """Whether a signed request to it is valid for as long as its secret is."""
    return webhook.auth == "github"


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


class TriggerStore(Protocol):
    """The part of a Store that this topic adds."""

    async def put_schedule(self, row: ScheduleRow) -> ScheduleRow:
        """Make it, or change it: see `merged_schedule` for what stays. Returns the row as it is now."""

    async def get_schedule(self, id: str) -> ScheduleRow | None: ...

    async def list_schedules(self, workflow: str | None = None, limit: int = 1_000) -> list[ScheduleRow]:
        """By id."""

    async def switch_schedule(
        self, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
    ) -> ScheduleRow | None:
        """Switching off forgets a queued moment. What is on keeps the next moment that it has. `times`: the cron and tz
        that `next_run_at_ms` was reckoned by; a schedule that has others by now is not switched on. Returns the row as
        it is now. None: no such schedule."""

    async def delete_schedule(self, id: str) -> bool:
        """Its runs stay."""

    async def due_schedules(self, now_ms: int, limit: int) -> list[ScheduleRow]:
        """Those with a moment that has come, and those with a queued one and no open run; longest due first."""

    async def next_schedule_ms(self) -> tuple[int | None, bool]:
        """The earliest `next_run_at_ms`, and whether any moment is queued."""

    async def fire(self, fire: Fire) -> Fired | None:
        """None, and nothing changed: the schedule is not as the fire expects. See rule 16."""

    async def list_fires(self, schedule_id: str, limit: int = FIRES_KEPT) -> list[FireRow]:
        """Newest first."""

    async def put_webhook(self, row: WebhookRow) -> WebhookRow:
        """Make it, or change it: see `merged_webhook` for what stays. Returns the row as it is now."""

    async def get_webhook(self, id: str) -> WebhookRow | None: ...

    async def list_webhooks(self, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
        """By id."""

    async def switch_webhook(self, id: str, enabled: bool, now_ms: int) -> WebhookRow | None: ...

    async def rotate_webhook(self, id: str, generation: int, now_ms: int) -> WebhookRow | None:
        """The secret of before is none any more, and what was signed with it need not be remembered."""

    async def delete_webhook(self, id: str) -> bool:
        """With its deliveries and refusals; its runs stay."""

    async def deliver(
        self, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun
    ) -> tuple[DeliveryRow, RunRow | None]:
        """The delivery and its run, one transaction. None: it came before, nothing was written, and the first value is
        the delivery that did. Raises Fenced: the webhook is not as `webhook` any more (but for its last run), and
        nothing was written."""

    async def list_deliveries(self, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
        """Newest first."""

    async def add_refusals(self, rows: Sequence[RefusalRow]) -> None:
        """Count them to those of the same webhook and reason, as `RefusalRow.after` does; one transaction."""

    async def list_refusals(self, webhook_id: str) -> list[RefusalRow]:
        """The reason that came last first; at most 50."""


def merged_schedule(old: ScheduleRow | None, new: ScheduleRow) -> ScheduleRow:
    """`new` with what outlives a change. A document that says the same of `enabled` as before leaves what people set;
    the next moment stays as long as the times are the same, so that none is lost that has come meanwhile."""
    if old is None:
        return new if new.enabled else replace(new, next_run_at_ms=None)
    kept = new.declared is not None and new.declared == old.declared
    enabled = old.enabled if kept else new.enabled
    same_times = (old.cron, old.tz, old.enabled) == (new.cron, new.tz, True)
    next_ms = (old.next_run_at_ms if same_times else None) or new.next_run_at_ms
    return replace(
        new,
        enabled=enabled,
        next_run_at_ms=next_ms if enabled else None,
        queued_at_ms=old.queued_at_ms if enabled else None,
        last_run_at_ms=old.last_run_at_ms,
        last_run_id=old.last_run_id,
        created_at_ms=old.created_at_ms,
    )


def merged_webhook(old: WebhookRow | None, new: WebhookRow) -> WebhookRow:
    """`new` with what outlives a change: as for schedules, and the generation of the secret."""
    if old is None:
        return new
    kept = new.declared is not None and new.declared == old.declared
    return replace(
        new,
        enabled=old.enabled if kept else new.enabled,
        generation=old.generation,
        last_run_at_ms=old.last_run_at_ms,
        last_run_id=old.last_run_id,
        created_at_ms=old.created_at_ms,
    )


def check_unchanged(webhook: WebhookRow, now: WebhookRow | None) -> None:
    """Raises Fenced."""
    if now is None or webhook != replace(now, last_run_at_ms=webhook.last_run_at_ms, last_run_id=webhook.last_run_id):
        raise Fenced(f"webhook {webhook.id} has changed")


def outcome_of(fire: Fire, is_open: bool, is_queued: bool) -> FireOutcome:
    """What becomes of a moment, given whether a run of the schedule is open and whether a moment is queued already."""
    if fire.run is None:
        return "missed" if fire.error is None else "failed"
    if fire.expects is None or fire.overlap == "allow" or not is_open:
        return "started"
    return "queued" if fire.overlap == "queue" and not is_queued else "skipped"
