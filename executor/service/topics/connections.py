"""Connections: add, list, delete, sign in to a provider; never read. `engine.connections`."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import replace

from executor.blocks.http.binding import checked_hosts
from executor.blocks.vault import oauth
from executor.blocks.vault.connection import (
    HOST_KEY,
    KINDS,
    NAME,
    PREFIX,
    PRIVATE_KEY,
    Connection,
    Credential,
    Kind,
    Pending,
    Provider,
    State,
    is_connection,
    opened,
    sealed,
)
from executor.errors import BadRequest, BlockError, Conflict, LimitExceeded, NotFound
from executor.kernel.store.topics.secrets import SECRETS_MAX, SecretRow
from executor.service.parts import Parts, Topic
from executor.service.topics.connection_tests import (
    NOTHING,
    ConnectionTest,
    ConnectionTested,
    ConnectionTests,
    asked_of,
)
from executor.service.topics.secrets import EnvUse, checked_value, documents, keys_of
from executor.service.views import view_of

log = logging.getLogger("weft.connections")

SIGN_IN_MS: Final = 10 * 60_000  # between the begin of a sign-in and its end
TEXT_MAX: Final = 2_000
NOT_STORED: Final = "(not stored)"
HOST_KEYS_MAX: Final = 10
_TESTED: Final = "connection_test:"  # notes of upkeep
_FIELD: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # a name of a header
_NOT_OURS: Final = frozenset({"host", "content-length", "connection", "transfer-encoding", "te", "trailer", "upgrade"})
_LOCAL: Final = ("127.0.0.1", "::1", "localhost")
_FIELDS: Final[dict[Kind, tuple[str, ...]]] = {
    "oauth2_code": ("token_url", "client_id", "authorize_url"),
    "oauth2_client": ("token_url", "client_id", "secret"),
    "api_key": ("secret",),
    "basic": ("username", "secret"),
    "bearer": ("secret",),
    "ssh": ("username", "secret"),
}


class ConnectionView(Struct, frozen=True):
    """Without its values, which no one can read. `state` is sign_in if no one has signed in yet; sign_in_again if the
    provider no longer gives tokens, see `problem`; unreadable if this server does not have its key. `check`: what a
    test of it requests, or nothing. `tested`: the last test, until it is replaced or signed in to again."""

    name: str
    kind: Kind | None
    hosts: tuple[str, ...]
    state: State
    problem: str
    provider: str
    check: str
    expires_at_ms: int | None
    created_by: str
    created_at_ms: int
    last_used_at_ms: int | None
    tested: ConnectionTested | None = None


class SignIn(Struct, frozen=True):
    """`url`: where the person goes; `until_ms`: how long the answer of the provider counts."""

    url: str
    redirect_uri: str
    until_ms: int


class Connections(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._vault = parts.vault
        self._http = parts.services.http
        self._tests = ConnectionTests(parts)
        self.redirect_uri = f"{parts.services.base_url}/settings"

    async def all(self) -> list[ConnectionView]:
        views = [self._view(row) for row in await self._store.list_secrets() if is_connection(row)]
        return [replace(view, tested=await self._tested(view.name)) for view in views]

    async def put(self, name: str, connection: Connection, hosts: Sequence[str], *, by: str = "") -> ConnectionView:
        """Store a connection, or replace the one with this name: people then have to sign in again. Raises BadRequest,
        Conflict, LimitExceeded."""
        keys = keys_of(self._vault)
        if not NAME.fullmatch(name):
            raise BadRequest(
                "the name of a connection consists of small letters, digits, _ and -, up to 63, and starts with a "
                "letter",
                code="connection_name_invalid",
            )
        _check(connection)
        found = checked_hosts(hosts)
        if not found:
            message = "a connection needs the hosts that it may be sent to"
            raise BadRequest(message, code="secret_hosts_invalid", pointer="/hosts", hint="such as api.example.com")
        rows = {row.name: row for row in await self._store.list_secrets()}
        before = rows.get(PREFIX + name)
        if before is None and len(rows) >= SECRETS_MAX:
            raise LimitExceeded(f"there can be at most {SECRETS_MAX} secrets", code="limit_secrets")
        base = before or SecretRow(PREFIX + name, 0, b"", keys.id, (), by, 0)
        row = replace(base, hosts=found, created_by=by, created_at_ms=self._clock.now_ms())
        self._vault.learn_connection(name, connection)
        row = sealed(keys, row, connection)
        if not await self._store.put_secret(row):
            raise _changed(name)
        await self._note_test(name, None)
        return self._view(row)

    async def delete(self, name: str) -> None:
        if not NAME.fullmatch(name) or not await self._store.delete_secret(PREFIX + name):
            raise _not_found(name)

    async def used_by(self, name: str) -> list[EnvUse]:
        await self._read(name)
        return [
            replace(use, blocks=blocks)
            async for _, document, use in documents(self._store)
            if (blocks := _blocks_with(document, name))
        ]

    async def test(
        self, name: str, service: str = "", base_url: str = "", new: tuple[Connection, Sequence[str]] | None = None
    ) -> ConnectionTest:
        """Ask its service who is signed in, or that of `new`, which is not stored, with its hosts. `service`: the
        connector of the block that names it, with the `base_url` of the block. Raises BadRequest, NotFound,
        Conflict."""
        await self._parts.connectors.refresh()
        row, connection = (None, new[0]) if new is not None else await self._read(name)
        hosts = row.hosts if row is not None else checked_hosts(new[1] if new is not None else ())
        asked = asked_of(self._parts, connection, hosts, service, base_url)
        if asked is None:
            return NOTHING
        if row is not None:
            found = await self._tests.test(asked, name, self._parts.connections)
            await self._note_test(name, ConnectionTested(self._clock.now_ms(), found))
            return found
        _check(connection)
        if connection.renews:
            raise BadRequest("store it first: its token comes with the sign-in", code="connection_invalid")
        self._vault.learn_connection(NOT_STORED, connection)
        row = SecretRow(PREFIX + NOT_STORED, 0, b"", "", hosts, "", 0)
        return await self._tests.test(asked, NOT_STORED, _Given(self._vault.credential(NOT_STORED, row, connection)))

    async def begin(self, name: str, by: str) -> SignIn:
        """Begin a sign-in at its provider, in place of one that was begun before. Only `by` can end it, once. Raises
        NotFound, Conflict."""
        row, connection = await self._read(name)
        if connection.kind != "oauth2_code" or connection.provider is None:
            raise Conflict(f"no one signs in to the connection {name}", code="connection_without_sign_in")
        state, verifier = f"{name}.{secrets.token_urlsafe(24)}", secrets.token_urlsafe(48)
        until_ms = self._clock.now_ms() + SIGN_IN_MS
        pending = Pending(_hash(state), _hash(by), verifier, self.redirect_uri, until_ms)
        changed = replace(connection, pending=pending)
        self._vault.learn_connection(name, changed)
        if not await self._store.put_secret(sealed(keys_of(self._vault), row, changed)):
            raise _changed(name)
        url = oauth.sign_in_url(connection.provider, self.redirect_uri, state, verifier)
        return SignIn(url, self.redirect_uri, until_ms)

    async def end(self, state: str, by: str, *, code: str = "", said: str = "", issuer: str = "") -> ConnectionView:
        """End a sign-in with the parameters that the provider gave the browser, which are valid once. Raises
        BadRequest, Conflict; BlockError if the provider does not answer."""
        name = state.partition(".")[0]
        row, connection = await self._found(name) or (None, None)
        pending = connection.pending if connection is not None else None
        if row is None or connection is None or pending is None or not hmac.compare_digest(pending.state, _hash(state)):
            raise _stale()
        if not hmac.compare_digest(pending.by, _hash(by)):
            message = "this sign-in was begun in another session"
            hint = "end it where it was begun: with `weft connection connect`, paste the address of this page there"
            raise BadRequest(message, code="oauth_state_invalid", hint=hint)
        connection = replace(connection, pending=None)
        row = sealed(keys_of(self._vault), row, connection)
        if not await self._store.put_secret(row):
            raise _stale()
        if self._clock.now_ms() >= pending.until_ms:
            raise _stale()
        provider = connection.provider
        assert provider is not None
        if issuer and provider.issuer and issuer != provider.issuer:
            message = "the answer comes from another provider than the connection names"
            raise BadRequest(message, code="oauth_issuer_wrong")
        if said or not code:
            shown = said[:100] if said.isascii() and said.isprintable() else ""
            message = f"the provider did not permit it: {shown or 'it gave no code'}"
            raise BadRequest(message, code="oauth_denied")
        try:
            tokens = await oauth.exchange(
                self._http, connection, code, pending.verifier, pending.redirect_uri, self._clock.now_ms()
            )
        except BlockError as error:
            if error.code != oauth.REFUSED:
                raise
            raise BadRequest(error.message, code=error.code) from error
        signed_in = replace(connection, tokens=tokens, problem="", lease=None)
        self._vault.learn_connection(name, signed_in)
        return await self._store_tokens(name, row, signed_in)

    async def _store_tokens(self, name: str, row: SecretRow, signed_in: Connection) -> ConnectionView:
        """Store tokens over those of a renewal meanwhile, but not over a connection that was set again."""
        for _ in range(5):
            after = sealed(keys_of(self._vault), row, signed_in)
            if await self._store.put_secret(after):
                await self._note_test(name, None)
                return self._view(after)
            found = await self._found(name)
            if found is None or found[1].provider != signed_in.provider or found[1].pending is not None:
                break
            row = found[0]
        raise _changed(name)

    async def _tested(self, name: str) -> ConnectionTested | None:
        note = await self._store.upkeep_note(_TESTED + name)
        with suppress(msgspec.DecodeError):  # of a later version
            return msgspec.json.decode(note, type=ConnectionTested) if note else None
        return None

    async def _note_test(self, name: str, tested: ConnectionTested | None) -> None:
        note = b"" if tested is None else msgspec.json.encode(tested)
        await self._store.put_upkeep_note(_TESTED + name, note, self._clock.now_ms())

    async def _read(self, name: str) -> tuple[SecretRow, Connection]:
        found = await self._found(name)
        if found is None:
            raise _not_found(name)
        return found

    async def _found(self, name: str) -> tuple[SecretRow, Connection] | None:
        rows = await self._store.get_secrets([PREFIX + name]) if NAME.fullmatch(name) else []
        try:
            return (rows[0], opened(keys_of(self._vault), rows[0])) if rows else None
        except BlockError as error:
            raise Conflict(error.message, code=error.code, hint=error.hint) from error

    def _view(self, row: SecretRow) -> ConnectionView:
        connection: Connection | None = None
        with suppress(BlockError):
            connection = opened(self._vault.need_keys(), row)
        asked = None if connection is None else asked_of(self._parts, connection, row.hosts)
        provider, tokens = (connection.provider, connection.tokens) if connection is not None else (None, None)
        return view_of(
            ConnectionView,
            row,
            name=row.name.removeprefix(PREFIX),
            kind=None if connection is None else connection.kind,
            state="unreadable" if connection is None else connection.state,
            problem="" if connection is None else connection.problem,
            check="" if asked is None else asked.line,
            provider="" if provider is None else urlsplit(provider.authorize_url or provider.token_url).netloc,
            expires_at_ms=None if tokens is None else tokens.expires_at_ms,
        )


class _Given(Struct, frozen=True):
    credential: Credential

    async def get(self, name: str, stale: Credential | None = None) -> Credential:
        return self.credential


def _check(connection: Connection) -> None:
    assert connection.kind in KINDS
    provider = connection.provider or Provider("", "")
    values: dict[str, Any] = {
        "secret": connection.secret,
        "username": connection.username,
        "token_url": provider.token_url,
        "client_id": provider.client_id,
        "authorize_url": provider.authorize_url,
        "check_url": connection.check_url,
    }
    for field in _FIELDS[connection.kind]:
        if not values[field]:
            raise _invalid(field, f"{field} is required")
    if connection.kind == "oauth2_code" and not provider.pkce and not connection.secret:
        raise _invalid("secret", "secret is required without PKCE")
    if connection.secret:
        checked_value(connection.secret, "/secret")
        if connection.kind == "ssh":
            _check_ssh(connection)
        elif not connection.secret.isprintable() or (connection.kind != "basic" and not connection.secret.isascii()):
            raise _invalid("secret", "it has characters that cannot be in a header")
    if ":" in connection.username or not connection.username.isprintable():
        raise _invalid("username", "it has characters that cannot be in a user name")
    for field in ("token_url", "authorize_url"):
        if values[field] and not _is_address(values[field]):
            raise _invalid(field, "it must start with https://, or with http:// on this machine, without user or #")
    if connection.check_url and not connection.check_url.startswith(("https://", "http://")):
        raise _invalid("check_url", "it must start with https:// or http://")
    if connection.kind == "api_key":
        named = connection.name
        if connection.where == "header" and (not _FIELD.fullmatch(named) or named.lower() in _NOT_OURS):
            raise _invalid("name", "it is no name of a header that can be set")
        if not connection.prefix.isascii() or not (connection.prefix.isprintable() or not connection.prefix):
            raise _invalid("prefix", "it has characters that cannot be in a header")
    if connection.kind == "ssh":
        del values["secret"]  # a private key is longer
    if any(len(text) > TEXT_MAX for text in (*values.values(), provider.scopes, provider.issuer, connection.name)):
        raise _invalid("kind", f"each text can have at most {TEXT_MAX} characters")


def _check_ssh(connection: Connection) -> None:
    if not connection.secret.startswith(PRIVATE_KEY):
        if not connection.secret.isprintable():
            raise _invalid("secret", "it must be a password of one line, or a private key with its first and last line")
        if connection.passphrase:
            raise _invalid("passphrase", "it is for a private key, and this is a password")
    if len(connection.passphrase) > TEXT_MAX or not connection.passphrase.isprintable():
        raise _invalid("passphrase", f"it must be one line of at most {TEXT_MAX:,} characters")
    if connection.check_url:
        raise _invalid("check_url", "a sign-in by SSH is sent in no request")
    lines = connection.host_key.splitlines()
    if len(lines) > HOST_KEYS_MAX or not all(len(one) <= TEXT_MAX and HOST_KEY.fullmatch(one) for one in lines):
        hint = "such as SHA256:… (43 characters) or ssh-ed25519 AAAA…, at most 10 lines"
        raise BadRequest("this is no host key", code="connection_invalid", pointer="/host_key", hint=hint)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.fragment or "#" in text or not parts.hostname or port == 0:
        return False
    return (
        text.isascii()
        and text.isprintable()
        and " " not in text
        and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL))
    )


def _blocks_with(document: bytes, name: str) -> tuple[str, ...]:
    if b'"connection"' not in document:
        return ()
    found = orjson.loads(document)
    blocks = found.get("blocks") if isinstance(found, dict) else None
    return tuple(
        id
        for id, block in (blocks.items() if isinstance(blocks, dict) else ())
        if isinstance(block, dict) and _names(block.get("params"), name)
    )


def _names(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return value.get("connection") == name or any(_names(inner, name) for inner in value.values())
    return isinstance(value, list) and any(_names(inner, name) for inner in value)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _invalid(field: str, message: str) -> BadRequest:
    return BadRequest(message, code="connection_invalid", pointer=f"/{field}")


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no connection {name[:100]!r}", code="connection_not_found")


def _changed(name: str) -> Conflict:
    return Conflict(f"the connection {name} was changed at the same time", code="connection_changed")


def _stale() -> BadRequest:
    message = "this sign-in has ended: it was begun more than 10 minutes ago, was used already, or was begun again"
    return BadRequest(message, code="oauth_state_invalid", hint="begin again with Connect")
