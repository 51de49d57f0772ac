"""Credentials of connections, for block calls. An expired token is renewed by one of the processes on the database, and
the provider's answer is on disk before anyone uses it.

The process that renews has a lease in the row, got by comparing its version; others wait for it. A renewal is a task of
its own: the end of an attempt does not stop it between the answer of the provider and the database. If the process is
killed there, a provider that permits each refresh token only once refuses the stored one, and people have to sign in
again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextvars import Context
from typing import Final

from msgspec.structs import replace

from executor.blocks.http.client import GuardedClient
from executor.blocks.vault import oauth
from executor.blocks.vault.connection import NAME, PREFIX, Connection, Credential, Lease, Tokens, opened, sealed
from executor.blocks.vault.vault import Vault
from executor.errors import BlockError
from executor.kernel.store.patience import with_retries
from executor.kernel.store.topics.secrets import SecretRow
from executor.kernel.store.topics.store import Store

log = logging.getLogger("weft.connections")

EARLY_MS: Final = 60_000  # a token that ends so soon is renewed before it is used
EARLY_PART: Final = 4  # but not before the last quarter of its life
LOOK_EVERY_S: Final = 0.25  # while another process has the lease
KEPT_PER_LEASE: Final = 3  # times that it is renewed
TURNS_MAX: Final = 1_000
SIGN_IN: Final = "an administrator can sign in again in Settings, Connections"


class Connections:
    def __init__(
        self, store: Store, vault: Vault, http: GuardedClient, now_ms: Callable[[], int], lease_ms: int
    ) -> None:
        self._store = store
        self._vault = vault
        self._http = http
        self._now_ms = now_ms
        self._lease_ms = lease_ms
        self._id = secrets.token_hex(8)
        self._renewals: dict[str, asyncio.Task[Credential]] = {}
        self._unstored: dict[str, tuple[Tokens | None, Tokens]] = {}

    async def get(self, name: str, stale: Credential | None = None) -> Credential:
        """Return the credential for a request now. `stale`: one that the service has refused. Raises BlockError:
        connection_unknown, connection_needs_sign_in, secret_unreadable; oauth_refused, and, retryable, oauth_failed."""
        row, connection = await self._read(name)
        await self._vault.note_use([row.name])
        if not self._has_ended(name, connection, stale):
            return self._vault.credential(name, row, connection)
        if (task := self._renewals.get(name)) is None:
            # Run outside of the attempt's context: its secrets and time limits are not the provider's.
            work = self._renew(name, stale)
            task = asyncio.create_task(work, name=f"renew the connection {name}", context=Context())
            self._renewals[name] = task
            task.add_done_callback(lambda done: self._ended(name, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait until the answers of the provider are stored."""
        if self._renewals:
            await asyncio.wait(list(self._renewals.values()), timeout=oauth.TIMEOUT_S)

    def _ended(self, name: str, task: asyncio.Task[Credential]) -> None:
        self._renewals.pop(name, None)
        if not task.cancelled():
            task.exception()  # its callers may have left

    def _has_ended(self, name: str, connection: Connection, stale: Credential | None) -> bool:
        if not connection.renews:
            return False
        if connection.problem or (connection.tokens is None and connection.kind == "oauth2_code"):
            raise needs_sign_in(name, connection.problem)
        tokens = connection.tokens
        if tokens is None or (stale is not None and self._vault.opened(stale.value) == (PREFIX + name, tokens.access)):
            return True
        if tokens.expires_at_ms is None:
            return False
        early_ms = min(EARLY_MS, max(0, tokens.expires_at_ms - tokens.at_ms) // EARLY_PART)
        return self._now_ms() >= tokens.expires_at_ms - early_ms

    async def _renew(self, name: str, stale: Credential | None) -> Credential:
        for _ in range(TURNS_MAX):
            row, connection = await self._read(name)
            if not self._has_ended(name, connection, stale):
                return self._vault.credential(name, row, connection)
            lease = connection.lease
            if lease is not None and lease.by != self._id and self._now_ms() < lease.until_ms:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            leased = replace(connection, lease=self._lease())
            if await self._put(sealed(self._vault.need_keys(), row, leased)):
                return await self._renew_leased(name, leased)
        raise BlockError(
            f"the connection {name} is being renewed by another process, which takes too long", code="oauth_failed"
        )

    def _lease(self) -> Lease:
        return Lease(self._id, self._now_ms() + self._lease_ms)

    async def _keep_lease(self, name: str, before: Tokens | None) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 1000 / KEPT_PER_LEASE)
            await self._change(name, before, self._with_lease)

    def _with_lease(self, connection: Connection) -> Connection:
        """Prolong the lease of this process, unless another process has it, because this one stood still."""
        lease = connection.lease
        return connection if lease is None or lease.by != self._id else replace(connection, lease=self._lease())

    async def _renew_leased(self, name: str, connection: Connection) -> Credential:
        before = connection.tokens
        kept = self._unstored.get(name)
        if kept is not None and kept[0] == before:  # the database could not be written to the last time
            tokens = kept[1]
        else:
            if connection.kind == "oauth2_code" and (before is None or not before.refresh):
                raise await self._marked(name, before, "the provider sent no refresh token")
            keeping = asyncio.create_task(self._keep_lease(name, before), name=f"lease of the connection {name}")
            try:
                tokens = await oauth.renew(self._http, connection, self._now_ms())
            except BlockError as error:
                if connection.kind == "oauth2_code" and oauth.ends_sign_in(error):
                    raise await self._marked(name, before, error.message) from error
                await self._change(name, before, lambda one: replace(one, lease=None))
                raise
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
            self._unstored[name] = before, tokens
        self._vault.learn_connection(name, replace(connection, tokens=tokens))
        found = await self._change(name, before, lambda one: replace(one, tokens=tokens, lease=None, problem=""))
        self._unstored.pop(name, None)
        if found is None:  # deleted, or set again meanwhile: the tokens are of another one
            return await self._again(name)
        return self._vault.credential(name, *found)

    async def _again(self, name: str) -> Credential:
        row, connection = await self._read(name)
        if self._has_ended(name, connection, None):
            raise BlockError(f"the connection {name} was changed meanwhile", code="oauth_failed")
        return self._vault.credential(name, row, connection)

    async def _marked(self, name: str, before: Tokens | None, why: str) -> BlockError:
        log.warning("the connection %s needs a new sign-in: %s", name, why)
        await self._change(name, before, lambda one: replace(one, tokens=None, problem=why, lease=None))
        return needs_sign_in(name, why)

    async def _change(
        self, name: str, before: Tokens | None, change: Callable[[Connection], Connection]
    ) -> tuple[SecretRow, Connection] | None:
        """Write the change, or return None if the tokens are no longer `before`. Raises BlockError."""
        for _ in range(TURNS_MAX):
            try:
                row, connection = await self._read(name)
            except BlockError as error:
                if error.code == "connection_unknown":
                    return None
                raise
            if connection.tokens != before:
                return None
            after = change(connection)
            if await self._put(sealed(self._vault.need_keys(), row, after)):
                return row, after
        return None

    async def _put(self, row: SecretRow) -> bool:
        return await with_retries(
            lambda: self._store.put_secret(row),
            what=f"writing {row.name}",
            failed="the database could not be written to",
            log=log,
        )

    async def _read(self, name: str) -> tuple[SecretRow, Connection]:
        rows = []
        if NAME.fullmatch(name):
            rows = await with_retries(
                lambda: self._store.get_secrets([PREFIX + name]),
                what=f"reading the connection {name}",
                failed="the database could not be read",
                log=log,
            )
        if not rows:
            hint = "an administrator can add it in Settings, Connections"
            message = f"there is no connection {name[:80]!r}"
            raise BlockError(message, code="connection_unknown", retryable=False, hint=hint)
        connection = opened(self._vault.need_keys(), rows[0])
        self._vault.learn_connection(name, connection)
        return rows[0], connection


def needs_sign_in(name: str, why: str) -> BlockError:
    message = f"the connection {name} needs a new sign-in: {why}" if why else f"the connection {name} is not signed in"
    return BlockError(message, code="connection_needs_sign_in", retryable=False, hint=SIGN_IN)
