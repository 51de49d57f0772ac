"""Keys of the installation, and the links that were made with those before."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from executor.kernel.store.statements import take_run
from executor.kernel.store.topics.waits import WAIT, WaitRow
from executor.kernel.store.tx import Readers, Tx


class KeyRow(Struct, frozen=True):
    """A key. `until_ms` is None for the present key; what was made with another is valid until then."""

    id: str
    since_ms: int
    until_ms: int | None


class Relinked(Struct, frozen=True):
    """The new hash of the link of an open wait. `key_id` is the key that `was` was made with, or None if it is unknown:
    that link is invalid then."""

    run_id: str
    wait_id: str
    was: str
    token_hash: str
    key_id: str | None


LIST = "SELECT id, since_ms, until_ms FROM secret_keys ORDER BY id"
PRESENT = "SELECT id FROM secret_keys WHERE until_ms IS NULL"
TAKE = "INSERT INTO secret_keys (id, since_ms, until_ms) VALUES (:id, :now, NULL) ON CONFLICT DO NOTHING"
END_OTHERS = """
UPDATE secret_keys SET until_ms = :until WHERE id <> :id AND (until_ms IS NULL OR until_ms > :now)"""
CHANGE = """
INSERT INTO secret_keys (id, since_ms, until_ms) VALUES (:id, :now, NULL)
ON CONFLICT (id) DO UPDATE SET until_ms = NULL"""
FORGET = "DELETE FROM old_links WHERE key_id IN (SELECT id FROM secret_keys WHERE until_ms <= :now)"
RELINK = """
UPDATE waits SET token_hash = :hash
 WHERE run_id = :run AND id = :id AND token_hash = :was AND (status = 'pending') IS TRUE"""
KEEP = """
INSERT INTO old_links (token_hash, run_id, wait_id, key_id) VALUES (:was, :run, :id, :key)
ON CONFLICT (token_hash) DO NOTHING"""
OLD_WAIT = f"""
SELECT {WAIT} FROM waits
 WHERE (run_id, id) IN
       (SELECT old_links.run_id, old_links.wait_id FROM old_links JOIN secret_keys ON secret_keys.id = old_links.key_id
         WHERE old_links.token_hash = :token AND (secret_keys.until_ms IS NULL OR secret_keys.until_ms > :now))"""


async def list_keys(readers: Readers) -> list[KeyRow]:
    """Return keys by id."""
    return [KeyRow(*row) for row in await readers.all(LIST)]


async def find_old_wait(readers: Readers, token_hash: str, now_ms: int) -> WaitRow | None:
    """Return the wait whose link this was, while the key that it was made with is valid."""
    row = await readers.one(OLD_WAIT, {"token": token_hash, "now": now_ms})
    return None if row is None else WaitRow(*row)


def take_key(tx: Tx, id: str, now_ms: int) -> str:
    """Return the id of the present key, which is this one if there was none."""
    tx.run(TAKE, {"id": id, "now": now_ms})
    ((present,),) = tx.rows(PRESENT)
    return str(present)


def change_key(tx: Tx, id: str, now_ms: int, until_ms: int) -> bool:
    """Make this the present key; those before it that are still valid are so until `until_ms`. Links of those that
    are not are forgotten. Returns False if nothing had to change."""
    was_present = tx.rows(PRESENT) == [(id,)]
    ended = tx.run(END_OTHERS, {"id": id, "now": now_ms, "until": until_ms})
    tx.run(CHANGE, {"id": id, "now": now_ms})
    tx.run(FORGET, {"now": now_ms})
    return not was_present or ended > 0


def relink(tx: Tx, changes: Sequence[Relinked]) -> int:
    """Replace hashes in one transaction. Returns how many were changed: a wait that is closed, or has another hash
    by now, stays."""
    done = 0
    for change in sorted(changes, key=lambda each: (each.run_id, each.wait_id)):
        take_run(tx, change.run_id)
        place = {"run": change.run_id, "id": change.wait_id, "was": change.was}
        if not tx.run(RELINK, {**place, "hash": change.token_hash}):
            continue
        done += 1
        if change.key_id is not None:
            tx.run(KEEP, {**place, "key": change.key_id})
    return done
