"""Stored secrets: set, list, delete and seal again, never read (`engine.secrets`). And the names of the environment,
with the documents that read them, without their values (`engine.environment`)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Any, Final, Literal

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.needs import environment_names
from executor.blocks.http.binding import checked_hosts
from executor.blocks.http.parts import checked_places
from executor.blocks.vault.connection import is_connection
from executor.blocks.vault.sealing import Keys
from executor.blocks.vault.vault import VALUE_CHARS_MIN, Vault
from executor.errors import BadRequest, Conflict, LimitExceeded, NotFound
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import as_ours
from executor.kernel.store.topics.secrets import SECRETS_MAX, Resealed, SecretRow
from executor.kernel.store.topics.store import Store
from executor.service.parts import Parts, Topic
from executor.service.views import view_of

VALUE_BYTES_MAX: Final = 64 * 1024
RESEALED_AT_ONCE: Final = 20
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")


class SecretView(Struct, frozen=True):
    """Without its value, which no one can read. `readable`: this server has the key that it is encrypted with.
    `places`: where in a request it may stand, empty for anywhere. `in_environment`: the server has an environment value
    of the same name, which workflows read instead."""

    name: str
    version: int
    hosts: tuple[str, ...]
    places: tuple[str, ...]
    created_by: str
    created_at_ms: int
    last_used_at_ms: int | None
    readable: bool
    in_environment: bool


class SecretsResealed(Struct, frozen=True):
    """The number of secrets that were encrypted with the present key, and of open waits with a new link."""

    resealed: int
    relinked: int


class Secrets(Topic):
    async def all(self) -> list[SecretView]:
        rows = [row for row in await self._store.list_secrets() if not is_connection(row)]
        self._parts.vault.know(rows)
        return [self._view(row) for row in rows]

    async def set(
        self, name: str, value: str, hosts: Sequence[str] = (), places: Sequence[str] = (), *, by: str = ""
    ) -> SecretView:
        """Set a first or a new value, which runs read from their next block call on. Raises BadRequest, Conflict,
        LimitExceeded."""
        keys = keys_of(self._parts.vault)
        _check(name, value)
        rules = checked_hosts(hosts), checked_places(places)
        if self._parts.vault.is_given(name):
            raise Conflict(
                f"{name} is set in the environment of this server",
                code="secret_in_environment",
                hint=f"remove WEFT_ENV_{name} or WEFT_SECRET_{name}, or use another name",
            )
        rows = {row.name: row for row in await self._store.list_secrets()}
        if name not in rows and len(rows) >= SECRETS_MAX:
            raise LimitExceeded(f"there can be at most {SECRETS_MAX} secrets", code="limit_secrets")
        version = rows[name].version + 1 if name in rows else 1
        self._parts.redactor.learn(name, version, value)
        sealed = keys.seal(name, version, value)
        used = rows[name].last_used_at_ms if name in rows else None
        row = SecretRow(name, version, sealed, keys.id, rules[0], by, self._clock.now_ms(), used, rules[1])
        if not await self._store.put_secret(row):
            raise Conflict(f"the secret {name} was changed at the same time", code="secret_changed")
        self._parts.vault.names |= {name}
        return self._view(row)

    async def delete(self, name: str) -> None:
        if not _NAME.fullmatch(name) or not await self._store.delete_secret(name):
            raise NotFound(f"there is no secret {name[:100]!r}", code="secret_not_found")
        if not self._parts.vault.is_given(name):
            self._parts.vault.names -= {name}

    async def reseal(self) -> int:
        """Encrypt the secrets of known older keys with the present key, in small transactions. Returns their number."""
        keys = keys_of(self._parts.vault)
        old = [row for row in await self._store.list_secrets() if row.key_id != keys.id and keys.has(row.key_id)]
        done = 0
        for at in range(0, len(old), RESEALED_AT_ONCE):
            some = old[at : at + RESEALED_AT_ONCE]
            done += await self._store.reseal_secrets([_resealed(keys, row) for row in some])
        return done

    async def rekey(self, grace_ms: int) -> SecretsResealed:
        """Make this process's key the valid one: secrets are sealed with it, and open waits get new links. What the
        keys before have signed stays valid for `grace_ms` more. It can be interrupted and repeated."""
        keys_of(self._parts.vault)
        relinked = await self._parts.key_times.change(grace_ms)
        return SecretsResealed(await self.reseal(), relinked)

    def _view(self, row: SecretRow) -> SecretView:
        readable = self._parts.vault.keys is not None and self._parts.vault.keys.has(row.key_id)
        return view_of(SecretView, row, readable=readable, in_environment=self._parts.vault.is_given(row.name))


def keys_of(vault: Vault) -> Keys:
    """Raises Conflict: this process has none."""
    if vault.keys is None:
        raise Conflict("this process has no key for secrets", code="secrets_without_key")
    return vault.keys


def _resealed(keys: Keys, row: SecretRow) -> Resealed:
    sealed = keys.seal(row.name, row.version, keys.open(row))
    return Resealed(row.name, row.version, row.key_id, sealed, keys.id)


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadRequest(
            "the name of a secret consists of capital letters, digits and _, up to 100, and starts with a letter or _",
            code="secret_name_invalid",
        )
    checked_value(value, "/value")


def checked_value(value: str, pointer: str) -> None:
    if len(value) < VALUE_CHARS_MIN or len(value.encode(errors="surrogatepass")) > VALUE_BYTES_MAX:
        message = f"the value of a secret must have at least {VALUE_CHARS_MIN} characters and at most 64 KiB"
        raise BadRequest(message, code="secret_value_invalid", pointer=pointer)


# --- names of the environment ---


DRAFTS_MAX = 1_000  # as many of the newest drafts are looked at


class EnvUse(Struct, frozen=True):
    """A document that reads a name. `id`: of the draft, or the workflow's name; `version` of the workflow (the
    active one), or `rev` of the draft; `blocks` the ids of the blocks that read it."""

    kind: Literal["workflow", "draft"]
    id: str
    name: str
    blocks: tuple[str, ...]
    version: int | None = None
    rev: int | None = None


Key = tuple[str, str, int]


async def documents(store: Store, known: Collection[Key] = ()) -> AsyncIterator[tuple[Key, bytes, EnvUse]]:
    """Yield active versions and the newest drafts, each with a use that has no blocks yet. Drafts that are `known` are
    not read."""
    for row in await store.list_workflows():
        yield ("workflow", row.name, row.version), row.document, EnvUse("workflow", row.name, row.name, (), row.version)
    for head in await store.list_drafts(limit=DRAFTS_MAX):
        document = b""
        if ("draft", head.id, head.rev) not in known:
            draft = await store.get_draft(head.id)
            if draft is None:
                continue  # deleted meanwhile
            head, document = draft, draft.document
        yield ("draft", head.id, head.rev), document, EnvUse("draft", head.id, head.name, (), rev=head.rev)


class EnvName(Struct, frozen=True):
    """`set`: it has a value on this server. `secret`: the value is redacted in everything that is recorded or shown."""

    name: str
    set: bool
    secret: bool
    used_by: tuple[EnvUse, ...]


class Environment(Topic):
    """Caches the names found in each document, because reading a thousand of them takes a second."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._found: dict[Key, dict[str, list[str]]] = {}

    async def names(self) -> list[EnvName]:
        """List the names that are set, and those that are read but not set; in active versions and drafts only."""
        uses: dict[str, list[EnvUse]] = {name: [] for name in self._parts.services.names}
        found: dict[Key, dict[str, list[str]]] = {}
        async for key, document, use in documents(self._store, self._found):
            names = self._found.get(key)
            found[key] = names if names is not None else await aside(partial(self._names_in, document))
            for name, blocks in found[key].items():
                uses.setdefault(name, []).append(replace(use, blocks=tuple(blocks)))
        self._found = found
        known = self._parts.services.names
        return [EnvName(name, name in known, self._is_secret(name), tuple(uses[name])) for name in sorted(uses)]

    def _is_secret(self, name: str) -> bool:
        """A name that is not set would be a secret: that is the default for values."""
        return name in self._parts.services.secrets or name not in self._parts.services.env

    def _names_in(self, data: bytes) -> dict[str, list[str]]:
        document: Any = orjson.loads(data)
        known = self._parts.services.names
        return environment_names(as_ours(document, known, self._parts.registry).document, self._parts.registry, known)
