"""Stored secrets: what there is, never a value."""

from __future__ import annotations

from starlette.responses import Response

from executor.service.topics.secrets import SecretView
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.secrets import RekeyQuery, SecretDeleted, SecretList, SecretSpec, SecretsResealed


async def list_all(call: Call) -> Response:
    """Names, versions, hosts and places."""
    return json_response(SecretList(await call.engine.secrets.all()))


async def put(call: Call) -> Response:
    """Set a value, or replace it. Runs read it from their next block call on. 409: the server has an environment value
    of this name."""
    spec = await read_as(call.request, call.limits, SecretSpec)
    hosts, places = ", ".join(spec.hosts) or "no host", ", ".join(spec.places) or "any place"
    call.note(f"for {hosts}, in {places}"[:500])
    by = call.who.actor
    stored = await call.engine.secrets.set(call.path("name"), spec.value, spec.hosts, spec.places, by=by)
    return json_response(stored)


async def delete(call: Call) -> Response:
    """Blocks that name it no longer get a value."""
    await call.engine.secrets.delete(call.path("name"))
    return json_response(SecretDeleted(call.path("name"), True))


async def reseal(call: Call) -> Response:
    """Encrypt secrets with the present key, and make the links of open waits with it. What was made with the key before
    counts for `grace_s` more: links, secrets of webhooks, addresses of pages, signatures. It can be repeated, after an
    interruption or with another time."""
    grace_s = call.query(RekeyQuery).grace_s
    call.note(f"{grace_s} s")
    done = await call.engine.secrets.rekey(grace_s * 1000)
    return json_response(SecretsResealed(done.resealed, done.relinked))


_ONE = "/api/secrets/{name}"

TABLE = (
    RouteSpec("GET", "/api/secrets", list_all, "List secrets", "secrets", needs="admin", answer=SecretList),
    RouteSpec(
        "PUT",
        _ONE,
        put,
        "Set a secret",
        "secrets",
        needs="admin",
        body=SecretSpec,
        answer=SecretView,
        statuses=(400, 409, 422),
    ),
    RouteSpec(
        "DELETE", _ONE, delete, "Delete a secret", "secrets", needs="admin", answer=SecretDeleted, statuses=(404,)
    ),
    RouteSpec(
        "POST",
        "/api/secrets/rekey",
        reseal,
        "Change to the present key",
        "secrets",
        needs="admin",
        answer=SecretsResealed,
        statuses=(409,),
        query=RekeyQuery,
    ),
)
