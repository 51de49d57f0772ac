"""Stored secrets: what there is, never a value."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.service.topics.secrets import SecretsResealed, SecretView
from server.http.table import Call, Routes, RouteSpec


class SecretSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`hosts`: where the value may be sent to: names, `*.example.com`, perhaps with a port. Without hosts it can be
    sent nowhere. `places`: where in a request it may stand: `header:NAME`, `query:NAME`, `path`, `body`. Without places
    it may stand anywhere."""

    value: str
    hosts: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


class SecretList(Struct, frozen=True):
    """The secrets, by name. Values never leave the server."""

    secrets: list[SecretView]


class SecretDeleted(Struct, frozen=True):
    name: str
    deleted: bool


class RekeyQuery(Struct, frozen=True):
    grace_s: Annotated[
        int,
        Meta(ge=0, le=90 * 86_400, description="How long what was made with the key before still counts, in seconds."),
    ] = 7 * 86_400


_ONE = "/api/secrets/{name}"

route = Routes("secrets", RouteSpec)


@route("GET", "/api/secrets", "List secrets", needs="admin")
async def list_all(call: Call) -> SecretList:
    """Names, versions, hosts and places."""
    return SecretList(await call.engine.secrets.all())


@route("PUT", _ONE, "Set a secret", needs="admin", statuses=(409,), always=True)
async def put(call: Call, name: str, body: SecretSpec) -> SecretView:
    """Set a value, or replace it. Runs read it from their next block call on. 409: the server has an environment value
    of this name."""
    hosts, places = ", ".join(body.hosts) or "no host", ", ".join(body.places) or "any place"
    call.record(f"for {hosts}, in {places}"[:500])
    by = call.who.actor
    stored = await call.engine.secrets.set(name, body.value, body.hosts, body.places, by=by)
    return stored


@route("DELETE", _ONE, "Delete a secret", needs="admin")
async def delete(call: Call, name: str) -> SecretDeleted:
    """Blocks that name it no longer get a value."""
    await call.engine.secrets.delete(name)
    return SecretDeleted(name, True)


@route("POST", "/api/secrets/rekey", "Change to the present key", needs="admin", statuses=(409,))
async def reseal(call: Call, query: RekeyQuery) -> SecretsResealed:
    """Encrypt secrets with the present key, and make the links of open waits with it. What was made with the key before
    counts for `grace_s` more: links, secrets of webhooks, addresses of pages, signatures. It can be repeated, after an
    interruption or with another time."""
    grace_s = query.grace_s
    call.record(f"{grace_s} s")
    return await call.engine.secrets.rekey(grace_s * 1000)
