"""The environment names of this server, and which documents read them, never their values; `engine.environment`."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import orjson
from msgspec import Struct

from compiler.needs import environment_names
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import as_ours
from executor.service.parts import Parts

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


class EnvName(Struct, frozen=True):
    """`set`: it has a value on this server. `secret`: the value is redacted in everything that is recorded or shown."""

    name: str
    set: bool
    secret: bool
    used_by: tuple[EnvUse, ...]


class Environment:
    """Caches the names found in each document, because reading a thousand of them takes a second."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._registry = parts.registry
        self._services = parts.services
        self._found: dict[tuple[str, str, int], dict[str, list[str]]] = {}

    async def names(self) -> list[EnvName]:
        """List the names that are set, and those that are read but not set; in active versions and drafts only."""
        uses: dict[str, list[EnvUse]] = {name: [] for name in self._services.names}
        found: dict[tuple[str, str, int], dict[str, list[str]]] = {}
        for row in await self._store.list_workflows():
            key = ("workflow", row.name, row.version)
            names = self._found.get(key)
            found[key] = names if names is not None else await aside(partial(self._names_in, row.document))
            for name, blocks in found[key].items():
                use = EnvUse("workflow", row.name, row.name, tuple(blocks), version=row.version)
                uses.setdefault(name, []).append(use)
        for head in await self._store.list_drafts(limit=DRAFTS_MAX):
            key = ("draft", head.id, head.rev)
            if key not in self._found:
                draft = await self._store.get_draft(head.id)
                if draft is None:
                    continue  # deleted meanwhile
                head, key = draft, ("draft", draft.id, draft.rev)
                found[key] = await aside(partial(self._names_in, draft.document))
            else:
                found[key] = self._found[key]
            for name, blocks in found[key].items():
                uses.setdefault(name, []).append(EnvUse("draft", head.id, head.name, tuple(blocks), rev=head.rev))
        self._found = found
        known = self._services.names
        return [EnvName(name, name in known, self._is_secret(name), tuple(uses[name])) for name in sorted(uses)]

    def _is_secret(self, name: str) -> bool:
        """A name that is not set would be a secret: that is the default for values."""
        return name in self._services.secrets or name not in self._services.env

    def _names_in(self, data: bytes) -> dict[str, list[str]]:
        document: Any = orjson.loads(data)
        known = self._services.names
        return environment_names(as_ours(document, known, self._registry).document, self._registry, known)
