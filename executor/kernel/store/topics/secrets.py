"""Stored secrets, which are sealed values by name; keys of the installation, and the links that were made with those
before. A store never sees a value or a key, only what is sealed and the id of the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import Readers, Row, Tx, as_list, columns, insert, lock_run
from executor.kernel.store.topics.waits import WAIT, WaitRow

SECRETS_MAX: Final = 500  # each is searched in everything that is recorded


class SecretRow(Struct, frozen=True):
    """The newest value of a name. `sealed` is sealed with the key `key_id` for this name and this `version`, which is
    one higher with each value. `hosts`: where it may be sent to; `places`: where in a request it may stand, () for
    anywhere."""

    name: str
    version: int
    sealed: bytes
    key_id: str
    hosts: tuple[str, ...]
    created_by: str
    created_at_ms: int
    last_used_at_ms: int | None = None
    places: tuple[str, ...] = ()


class Resealed(Struct, frozen=True):
    """The same value of a version, sealed with another key than `was`."""

    name: str
    version: int
    was: str
    sealed: bytes
    key_id: str


COLUMNS = columns(SecretRow)
ADD = f"{insert('secrets', SecretRow)} ON CONFLICT (name) DO NOTHING"
REPLACE = """
UPDATE secrets
   SET version = :version, sealed = :sealed, key_id = :key_id, hosts = :hosts, created_by = :created_by,
       created_at_ms = :created_at_ms, places = :places
 WHERE name = :name AND version = :version - 1"""
GET = f"SELECT {COLUMNS} FROM secrets WHERE name IN $texts(:names) ORDER BY name"
USE = """
UPDATE secrets SET last_used_at_ms = :now
 WHERE name = :name AND (last_used_at_ms IS NULL OR last_used_at_ms < :now)"""
RESEAL = """
UPDATE secrets SET sealed = :sealed, key_id = :key_id WHERE name = :name AND version = :version AND key_id = :was"""

_texts = msgspec.json.Decoder(tuple[str, ...]).decode


async def get_secrets(readers: Readers, names: Sequence[str]) -> list[SecretRow]:
    return [_row(row) for row in await readers.all(GET, {"names": as_list(names)})]


async def list_secrets(readers: Readers) -> list[SecretRow]:
    return [_row(row) for row in await readers.all(f"SELECT {COLUMNS} FROM secrets ORDER BY name")]


def put_secret(tx: Tx, row: SecretRow) -> bool:
    """Returns False, with nothing written, if the version before this value's is not the one that is there."""
    values = msgspec.structs.asdict(row)
    values |= {key: msgspec.json.encode(values[key]).decode() for key in ("hosts", "places")}
    return tx.run(ADD if row.version == 1 else REPLACE, values) == 1


def use_secrets(tx: Tx, names: Sequence[str], now_ms: int) -> None:
    """`last_used_at_ms` only grows."""
    for name in sorted(names):  # in one order, so that two transactions do not wait for each other
        tx.run(USE, {"name": name, "now": now_ms})


def reseal_secrets(tx: Tx, changes: Sequence[Resealed]) -> int:
    """Returns how many were changed: a secret that has another version or key by now stays."""
    ordered = sorted(changes, key=lambda each: each.name)
    return sum(tx.run(RESEAL, msgspec.structs.asdict(change)) for change in ordered)


def delete_secret(tx: Tx, name: str) -> bool:
    return tx.run("DELETE FROM secrets WHERE name = :name", {"name": name}) == 1


def _row(row: Row) -> SecretRow:
    name, version, sealed, key_id, hosts, by, at_ms, used_at_ms, places = row
    return SecretRow(name, version, sealed, key_id, _texts(hosts), by, at_ms, used_at_ms, _texts(places))


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


PRESENT_KEY = "SELECT id FROM secret_keys WHERE until_ms IS NULL"
ADD_KEY = "INSERT INTO secret_keys (id, since_ms, until_ms) VALUES (:id, :now, NULL) ON CONFLICT DO NOTHING"
END_OTHER_KEYS = """
UPDATE secret_keys SET until_ms = :until WHERE id <> :id AND (until_ms IS NULL OR until_ms > :now)"""
CHANGE_KEY = """
INSERT INTO secret_keys (id, since_ms, until_ms) VALUES (:id, :now, NULL)
ON CONFLICT (id) DO UPDATE SET until_ms = NULL"""
RELINK = """
UPDATE waits SET token_hash = :hash
 WHERE run_id = :run AND id = :id AND token_hash = :was AND (status = 'pending') IS TRUE"""
KEEP_LINK = """
INSERT INTO old_links (token_hash, run_id, wait_id, key_id) VALUES (:was, :run, :id, :key)
ON CONFLICT (token_hash) DO NOTHING"""
OLD_WAIT = f"""
SELECT {WAIT} FROM waits
 WHERE (run_id, id) IN
       (SELECT old_links.run_id, old_links.wait_id FROM old_links JOIN secret_keys ON secret_keys.id = old_links.key_id
         WHERE old_links.token_hash = :token AND (secret_keys.until_ms IS NULL OR secret_keys.until_ms > :now))"""


async def list_keys(readers: Readers) -> list[KeyRow]:
    return await readers.fetch(KeyRow, f"SELECT {columns(KeyRow)} FROM secret_keys ORDER BY id")


async def find_old_wait(readers: Readers, token_hash: str, now_ms: int) -> WaitRow | None:
    """Return the wait whose link this was, while the key that it was made with is valid."""
    return await readers.fetch_one(WaitRow, OLD_WAIT, {"token": token_hash, "now": now_ms})


def claim_key(tx: Tx, id: str, now_ms: int) -> str:
    """Return the id of the present key, which is this one if there was none."""
    tx.run(ADD_KEY, {"id": id, "now": now_ms})
    return str(tx.row(PRESENT_KEY)[0])


def change_key(tx: Tx, id: str, now_ms: int, until_ms: int) -> bool:
    """Make this the present key; those before it that are still valid are so until `until_ms`. Links of those that
    are not are forgotten. Returns False if nothing had to change."""
    was_present = tx.rows(PRESENT_KEY) == [(id,)]
    ended = tx.run(END_OTHER_KEYS, {"id": id, "now": now_ms, "until": until_ms})
    tx.run(CHANGE_KEY, {"id": id, "now": now_ms})
    tx.run("DELETE FROM old_links WHERE key_id IN (SELECT id FROM secret_keys WHERE until_ms <= :now)", {"now": now_ms})
    return not was_present or ended > 0


def relink(tx: Tx, changes: Sequence[Relinked]) -> int:
    """Returns how many were changed: a wait that is closed, or has another hash by now, stays."""
    done = 0
    for change in sorted(changes, key=lambda each: (each.run_id, each.wait_id)):
        lock_run(tx, change.run_id)
        place = {"run": change.run_id, "id": change.wait_id, "was": change.was}
        if not tx.run(RELINK, {**place, "hash": change.token_hash}):
            continue
        done += 1
        if change.key_id is not None:
            tx.run(KEEP_LINK, {**place, "key": change.key_id})
    return done
