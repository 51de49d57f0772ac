"""Stored secrets: sealed values, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import as_list
from executor.kernel.store.tx import Readers, Row, Tx

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


COLUMNS = "name, version, sealed, key_id, hosts, created_by, created_at_ms, last_used_at_ms, places"
ADD = """
INSERT INTO secrets (name, version, sealed, key_id, hosts, created_by, created_at_ms, places)
VALUES (:name, :version, :sealed, :key_id, :hosts, :created_by, :created_at_ms, :places)
    ON CONFLICT (name) DO NOTHING"""
REPLACE = """
UPDATE secrets
   SET version = :version, sealed = :sealed, key_id = :key_id, hosts = :hosts, created_by = :created_by,
       created_at_ms = :created_at_ms, places = :places
 WHERE name = :name AND version = :version - 1"""
GET = f"SELECT {COLUMNS} FROM secrets WHERE name IN $texts(:names) ORDER BY name"
LIST = f"SELECT {COLUMNS} FROM secrets ORDER BY name"
USE = """
UPDATE secrets SET last_used_at_ms = :now
 WHERE name = :name AND (last_used_at_ms IS NULL OR last_used_at_ms < :now)"""
RESEAL = """
UPDATE secrets SET sealed = :sealed, key_id = :key_id WHERE name = :name AND version = :version AND key_id = :was"""
DELETE = "DELETE FROM secrets WHERE name = :name"

_texts = msgspec.json.Decoder(tuple[str, ...]).decode


async def get_secrets(readers: Readers, names: Sequence[str]) -> list[SecretRow]:
    """Return those of these secrets that exist, by name."""
    return [_row(row) for row in await readers.all(GET, {"names": as_list(list(names))})]


async def list_secrets(readers: Readers) -> list[SecretRow]:
    """Return all secrets, by name."""
    return [_row(row) for row in await readers.all(LIST)]


def put_secret(tx: Tx, row: SecretRow) -> bool:
    """Store a first value, or one that replaces the previous version. Returns False, with nothing written, if the
    name has another version than that."""
    values = msgspec.structs.asdict(row)
    values |= {key: msgspec.json.encode(values[key]).decode() for key in ("hosts", "places")}
    del values["last_used_at_ms"]
    return tx.run(ADD if row.version == 1 else REPLACE, values) == 1


def use_secrets(tx: Tx, names: Sequence[str], now_ms: int) -> None:
    """`last_used_at_ms` only grows."""
    for name in sorted(names):  # in one order, so that two transactions do not wait for each other
        tx.run(USE, {"name": name, "now": now_ms})


def reseal_secrets(tx: Tx, changes: Sequence[Resealed]) -> int:
    """Replace sealed values in one transaction. Returns how many were changed: a secret that has another version or
    key by now stays."""
    ordered = sorted(changes, key=lambda each: each.name)
    return sum(tx.run(RESEAL, msgspec.structs.asdict(change)) for change in ordered)


def delete_secret(tx: Tx, name: str) -> bool:
    return tx.run(DELETE, {"name": name}) == 1


def _row(row: Row) -> SecretRow:
    name, version, sealed, key_id, hosts, by, at_ms, used_at_ms, places = row
    return SecretRow(name, version, bytes(sealed), key_id, _texts(hosts), by, at_ms, used_at_ms, _texts(places))
