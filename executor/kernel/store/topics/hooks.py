"""Registrations of this server at services that report events. A row outlives its trigger until it is
removed at the service: whether it is wanted is looked up, so what changes a trigger need not know it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from executor.kernel.store.statements import Readers, Tx, columns, insert

LISTED_MAX: Final = 1_000


class _Hook(Struct, frozen=True):
    """`id` is a part of the address, which others cannot guess; `source` is that block of the trigger `schedule_id` for
    which it is. `until_ms`: nothing is done with it before, as a process is at work, or after a failure. `renew_at_ms`:
    when it is looked at again. `registered`: what the service calls it. `place`: the address and the key of this server
    when that began. `secret`: sealed, if the service chose it."""

    id: str
    schedule_id: str
    workflow: str
    source: bytes
    created_at_ms: int
    until_ms: int = 0
    renew_at_ms: int = 0
    place: str | None = None
    registered: str | None = None
    secret: bytes | None = None
    expires_at_ms: int | None = None
    delivered_at_ms: int | None = None
    failures: int = 0
    error: str | None = None


class HookRow(_Hook, frozen=True):
    """`wanted`: its trigger is there, switched on, and has this source."""

    wanted: bool = False

    def is_live(self, now_ms: int) -> bool:
        """Return True if the service is expected to report events."""
        lasts = self.expires_at_ms is None or self.expires_at_ms > now_ms
        return self.registered is not None and self.error is None and lasts


class HookChange(Struct, frozen=True):
    """The outcome for a registration that this process claimed: `until_ms` is still `expected_ms`, or nothing is
    written. `secret` None leaves the one that is there; `gone`: the row is deleted."""

    id: str
    expected_ms: int
    until_ms: int
    renew_at_ms: int = 0
    place: str | None = None
    registered: str | None = None
    secret: bytes | None = None
    expires_at_ms: int | None = None
    failures: int = 0
    error: str | None = None
    gone: bool = False


_WANTED = """(SELECT count(*) FROM schedules AS s
 WHERE s.id = hooks.schedule_id AND s.enabled = 1 AND s.push = hooks.source)"""
HOOK = f"{columns(_Hook)}, {_WANTED}"
DUE_HOOKS = f"""
SELECT {HOOK} FROM hooks
 WHERE until_ms <= :now AND (renew_at_ms <= :now OR (:place <> '' AND place <> :place) OR {_WANTED} = 0)
 ORDER BY until_ms, id LIMIT :limit"""
MISSING_HOOKS = """
SELECT s.id, s.workflow, s.push FROM schedules AS s
 WHERE s.push IS NOT NULL AND s.enabled = 1
   AND NOT EXISTS (SELECT 1 FROM hooks AS h WHERE h.schedule_id = s.id AND h.source = s.push)
 ORDER BY s.id LIMIT :limit"""
ADD_HOOK = f"{insert('hooks', _Hook)} ON CONFLICT DO NOTHING"
CLAIM_HOOK = """
UPDATE hooks SET until_ms = :until, place = coalesce(place, :place) WHERE id = :id AND until_ms = :expected"""
RECORD_HOOK = """
UPDATE hooks SET until_ms = :until_ms, renew_at_ms = :renew_at_ms, place = :place, registered = :registered,
       secret = coalesce(:secret, secret), expires_at_ms = :expires_at_ms, failures = :failures, error = :error
 WHERE id = :id AND until_ms = :expected_ms"""
KEEP_GIVEN = "UPDATE hooks SET secret = :secret WHERE id = :id AND until_ms > :now"
NOTE_DELIVERY = "UPDATE hooks SET delivered_at_ms = :now WHERE id = :id"
# The time of a poll that is claimed stays, as that is its fence: it is due again when it ends.
POLL_SOON = """
UPDATE schedules SET
       next_run_at_ms = CASE WHEN pushed_ms IS NULL AND next_run_at_ms > :now THEN :now ELSE next_run_at_ms END,
       pushed_ms = CASE WHEN pushed_ms IS NULL THEN NULL ELSE :now END
 WHERE enabled = 1 AND next_run_at_ms IS NOT NULL AND push IS NOT NULL AND (id = :id OR :id = '')"""


async def get_hook(readers: Readers, id: str) -> HookRow | None:
    return await readers.fetch_one(HookRow, f"SELECT {HOOK} FROM hooks WHERE id = :id", {"id": id})


async def list_hooks(readers: Readers, schedule_id: str | None = None) -> list[HookRow]:
    """List all registrations, or those of one trigger."""
    where = "" if schedule_id is None else "WHERE schedule_id = :id"
    query = f"SELECT {HOOK} FROM hooks {where} ORDER BY id LIMIT :limit"
    return await readers.fetch(HookRow, query, {"id": schedule_id, "limit": LISTED_MAX})


async def due_hooks(readers: Readers, now_ms: int, place: str, limit: int) -> list[HookRow]:
    """Return registrations with something to do: to be made, renewed, removed, or with a `place`, made again there."""
    return await readers.fetch(HookRow, DUE_HOOKS, {"now": now_ms, "place": place, "limit": limit})


async def missing_hooks(readers: Readers, limit: int) -> list[tuple[str, str, bytes]]:
    """Return triggers without a row for what they want: id, workflow, source."""
    rows = await readers.all(MISSING_HOOKS, {"limit": limit})
    return [(id, workflow, bytes(source)) for id, workflow, source in rows]


def add_hook(tx: Tx, id: str, schedule_id: str, workflow: str, source: bytes, now_ms: int) -> bool:
    """Add a registration that is to be made, unless there is one for this source."""
    return tx.run(ADD_HOOK, asdict(_Hook(id, schedule_id, workflow, source, now_ms))) == 1


def claim_hook(tx: Tx, id: str, expected_ms: int, until_ms: int, place: str) -> bool:
    """Take a registration for this process, until a time at which another one may take it."""
    return tx.run(CLAIM_HOOK, {"id": id, "expected": expected_ms, "until": until_ms, "place": place}) == 1


def record_hook(tx: Tx, change: HookChange) -> bool:
    """Returns False, with nothing changed, if the claim has ended and another process has it."""
    if change.gone:
        gone = "DELETE FROM hooks WHERE id = :id AND until_ms = :expected_ms"
        return tx.run(gone, {"id": change.id, "expected_ms": change.expected_ms}) == 1
    values = asdict(change)
    del values["gone"]
    return tx.run(RECORD_HOOK, values) == 1


def keep_hook_secret(tx: Tx, id: str, secret: bytes, now_ms: int) -> bool:
    """Store the secret that a service sends while it is asked to register. Returns False at any other time."""
    return tx.run(KEEP_GIVEN, {"id": id, "secret": secret, "now": now_ms}) == 1


def push_hook(tx: Tx, id: str, now_ms: int) -> bool:
    """A delivery has come: its source is polled at once. Returns False if its trigger does not want it any more."""
    row = tx.fetch_one(HookRow, f"SELECT {HOOK} FROM hooks WHERE id = :id", {"id": id})
    if row is None or not row.wanted:
        return False
    tx.run(NOTE_DELIVERY, {"id": id, "now": now_ms})
    return tx.run(POLL_SOON, {"id": row.schedule_id, "now": now_ms}) == 1


def poll_pushed(tx: Tx, now_ms: int) -> int:
    """Have all sources polled at once whose services report events: those of a while may have been missed. Returns
    their number."""
    return tx.run(POLL_SOON, {"id": "", "now": now_ms})
