"""Users, their sessions, tokens for programs, sign-in links."""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict

from executor.kernel.process.acting import Role
from executor.kernel.store.statements import Readers, Tx, columns, insert

PersonRole = Literal["viewer", "approver", "editor", "admin"]
PEOPLE_ROLES: Final[tuple[PersonRole, ...]] = get_args(PersonRole)
USERS_MAX: Final = 10_000
TOKENS_MAX: Final = 10_000
CODES_MAX: Final = 1_000


class UserRow(Struct, frozen=True):
    """`id` is what documents and people call them by; `identity` who they are at the provider that signs people in."""

    id: str
    name: str
    role: PersonRole
    created_at_ms: int
    identity: str | None = None


class TokenRow(Struct, frozen=True):
    """A token. `hash` is of the whole token. `user_id` is None if it was made with the token of the server. `workflows`
    is a JSON array of names, or None for all."""

    id: str
    hash: str
    name: str
    user_id: str | None
    role: Role
    workflows: str | None
    created_at_ms: int
    expires_at_ms: int
    used_at_ms: int | None = None


USER = columns(UserRow)
PUT_USER = f"""
INSERT INTO users ({USER})
SELECT :id, :name, :role, :created_at_ms, :identity
 WHERE (SELECT count(*) FROM users) < {USERS_MAX}
ON CONFLICT DO NOTHING"""
IDENTIFY = """
UPDATE users SET identity = :identity
 WHERE id = :id AND identity IS NULL AND NOT EXISTS (SELECT 1 FROM users WHERE identity = :identity)"""
PUT_CODE = "INSERT INTO sign_in_codes (hash, user_id, until_ms) VALUES (:hash, :user, :until)"
# Rows after the first :most. (A million at a time; there is no standard way to write: all.)
_DELETE_SURPLUS = """
DELETE FROM {table} WHERE hash IN (SELECT hash FROM {table} ORDER BY {last} DESC, hash LIMIT 1000000 OFFSET :most)"""
DELETE_SURPLUS_CODES = _DELETE_SURPLUS.format(table="sign_in_codes", last="until_ms")
DELETE_SURPLUS_SESSIONS = _DELETE_SURPLUS.format(table="sessions", last="seen_at_ms")
REDEEM = "DELETE FROM sign_in_codes WHERE hash = :hash RETURNING user_id, until_ms"

TOKENS = columns(TokenRow)
PUT_TOKEN = f"""
INSERT INTO api_tokens ({TOKENS})
SELECT :id, :hash, :name, :user_id, :role, :workflows, :created_at_ms, :expires_at_ms, :used_at_ms
 WHERE (SELECT count(*) FROM api_tokens) < {TOKENS_MAX}
ON CONFLICT (id) DO NOTHING"""
USE = "UPDATE api_tokens SET used_at_ms = :now WHERE id = :id AND (used_at_ms IS NULL OR used_at_ms < :now)"


def put_user(tx: Tx, row: UserRow) -> bool:
    """Returns False, with nothing changed, if there is one of this id or identity, or there are USERS_MAX."""
    return tx.run(PUT_USER, asdict(row)) == 1


async def get_user(readers: Readers, id: str) -> UserRow | None:
    return await readers.fetch_one(UserRow, f"SELECT {USER} FROM users WHERE id = :id", {"id": id})


async def get_user_of(readers: Readers, identity: str) -> UserRow | None:
    return await readers.fetch_one(UserRow, f"SELECT {USER} FROM users WHERE identity = :who", {"who": identity})


def identify(tx: Tx, id: str, identity: str) -> bool:
    """Give the user this identity. Returns False if there is no such user, they have one, or another user has it."""
    return tx.run(IDENTIFY, {"id": id, "identity": identity}) == 1


async def list_users(readers: Readers) -> list[UserRow]:
    return await readers.fetch(UserRow, f"SELECT {USER} FROM users ORDER BY id")


def set_role(tx: Tx, id: str, role: PersonRole) -> bool:
    """Set the role of a user. Returns False if there is no such user."""
    return tx.run("UPDATE users SET role = :role WHERE id = :id", {"id": id, "role": role}) == 1


def delete_user(tx: Tx, id: str) -> bool:
    """Delete a user with their sessions, tokens and sign-in links. Returns False if there is no such user."""
    if tx.run("DELETE FROM users WHERE id = :id", {"id": id}) == 0:
        return False
    for table in ("sessions", "api_tokens", "sign_in_codes"):
        tx.run(f"DELETE FROM {table} WHERE user_id = :id", {"id": id})
    return True


def put_code(tx: Tx, hash: str, user_id: str, until_ms: int, now_ms: int) -> bool:
    """Store the code of a sign-in link. Ended codes, and those beyond CODES_MAX that end next, are deleted."""
    tx.run("DELETE FROM sign_in_codes WHERE until_ms <= :now", {"now": now_ms})
    tx.run(DELETE_SURPLUS_CODES, {"most": CODES_MAX - 1})
    tx.run(PUT_CODE, {"hash": hash, "user": user_id, "until": until_ms})
    return True


def redeem_code(tx: Tx, hash: str, now_ms: int) -> str | None:
    """Return the user that the code signs in, once, or None if it is not valid."""
    for user, until_ms in tx.rows(REDEEM, {"hash": hash}):
        return str(user) if now_ms < until_ms else None
    return None


def put_token(tx: Tx, row: TokenRow) -> bool:
    """Add a token. Returns False, with nothing changed, if there are TOKENS_MAX, expired ones included."""
    return tx.run(PUT_TOKEN, asdict(row)) == 1


async def get_token(readers: Readers, id: str) -> TokenRow | None:
    return await readers.fetch_one(TokenRow, f"SELECT {TOKENS} FROM api_tokens WHERE id = :id", {"id": id})


async def list_tokens(readers: Readers) -> list[TokenRow]:
    return await readers.fetch(TokenRow, f"SELECT {TOKENS} FROM api_tokens ORDER BY created_at_ms, id")


def use_token(tx: Tx, id: str, now_ms: int) -> None:
    tx.run(USE, {"id": id, "now": now_ms})


def delete_token(tx: Tx, id: str) -> bool:
    return tx.run("DELETE FROM api_tokens WHERE id = :id", {"id": id}) == 1


SESSIONS_MAX: Final = 1_000


class SessionRow(Struct, frozen=True):
    """`mark` is of the token that it was made with: with another token it does not count. `user_id`: who signed in;
    `device`: what their browser calls itself."""

    hash: str
    mark: str
    created_at_ms: int
    seen_at_ms: int
    user_id: str = ""
    device: str = ""


SESSION = columns(SessionRow)
SEE_SESSION = "UPDATE sessions SET seen_at_ms = :seen WHERE hash = :hash AND seen_at_ms < :seen"
DELETE_EXPIRED_SESSIONS = "DELETE FROM sessions WHERE created_at_ms <= :created_after OR seen_at_ms <= :seen_after"


async def get_session(readers: Readers, hash: str) -> SessionRow | None:
    return await readers.fetch_one(SessionRow, f"SELECT {SESSION} FROM sessions WHERE hash = :hash", {"hash": hash})


async def list_sessions(readers: Readers) -> list[SessionRow]:
    return await readers.fetch(SessionRow, f"SELECT {SESSION} FROM sessions ORDER BY seen_at_ms DESC, hash")


def put_session(tx: Tx, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> bool:
    """Store a new session. Those that were created, or seen, no later than these times are deleted. Returns True."""
    tx.run(DELETE_EXPIRED_SESSIONS, {"created_after": created_after_ms, "seen_after": seen_after_ms})
    tx.run(DELETE_SURPLUS_SESSIONS, {"most": SESSIONS_MAX - 1})
    tx.run(insert("sessions", SessionRow), asdict(row))
    return True


def see_session(tx: Tx, hash: str, seen_at_ms: int) -> None:
    tx.run(SEE_SESSION, {"hash": hash, "seen": seen_at_ms})


def delete_session(tx: Tx, hash: str) -> bool:
    return tx.run("DELETE FROM sessions WHERE hash = :hash", {"hash": hash}) == 1


def delete_sessions(tx: Tx, user_id: str | None = None) -> int:
    of_user = "" if user_id is None else " WHERE user_id = :id"
    return tx.run(f"DELETE FROM sessions{of_user}", {"id": user_id})
