"""Registrations at the services that come with weft: each request as its API describes it, and deliveries signed as
each service signs them. The shapes are written by hand from public descriptions, as those of `test_services`."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from typing import Any, cast
from urllib.parse import parse_qsl

import orjson
import pytest
from msgspec.structs import asdict

from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.hooks import Registrations
from executor.blocks.connectors.validate import checked
from executor.blocks.http.client import GuardedClient
from executor.blocks.services import Services
from executor.errors import BadRequest, DeliveryRefused
from executor.service.triggers.requests import Received, prove
from tests.support.endpoints import Request, answer, http
from tests.support.hooked import HookedShop
from tests.unit.executor.blocks.connectors.test_services import CREDENTIAL, HERE, SHIPPED, _is_as
from tests.unit.executor.blocks.types.flow import context

PUSHED = {name: block for name, block in SHIPPED.items() if block.connector.hooks is not None}
NOW_S = 1_800_000_000
BODY = b'{"value": [{"clientState": "c2VjcmV0"}, {"clientState": "c2VjcmV0"}]}'


def _hex(secret: bytes, body: bytes) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


# The secret is base64, so that it is a key for all of them.
SIGNED: dict[str, Callable[[bytes, bytes], dict[str, str]]] = {
    "github": lambda secret, body: {"x-hub-signature-256": f"sha256={_hex(secret, body)}"},
    "gitlab": lambda secret, body: {"x-gitlab-token": secret.decode()},
    "stripe": lambda secret, body: {
        "stripe-signature": f"t={NOW_S},v1={_hex(secret, b'%d.' % NOW_S + body)},v0=6ffbb59b"
    },
    "airtable": lambda secret, body: {"x-airtable-content-mac": f"hmac-sha256={_hex(base64.b64decode(secret), body)}"},
    "asana": lambda secret, body: {"x-hook-signature": _hex(secret, body)},
    "outlook": lambda secret, body: {},
    "typeform": lambda secret, body: {
        "typeform-signature": "sha256=" + base64.b64encode(hmac.new(secret, body, hashlib.sha256).digest()).decode()
    },
}


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    made = Services(sandbox=cast(Any, None), http=GuardedClient(["127.0.0.1/32"]))
    yield made
    await made.http.close()


@pytest.mark.parametrize("service", sorted(PUSHED))
async def test_the_requests_about_registrations(services: Services, service: str) -> None:
    case = orjson.loads((HERE / f"{service}.json").read_bytes())["hooks"]
    calls = case["calls"]

    def play(request: Request) -> bytes:
        status, body = calls[len(server.seen) - 1]["answer"]
        return answer(status, b"" if body is None else orjson.dumps(body), content_type="application/json")

    async with http(play) as server:
        params = {"event": case["event"], "credential": CREDENTIAL, "base_url": server.url, **case["params"]}
        ctx = context(params, services=services, idempotency_key="hook", now_ms=0)
        url = "https://weft.example/hooks/push:n1"
        hooks = Registrations(EventBlock(PUSHED[service]), ctx, url, "weft-n1", "whsec_1")
        assert [one.url == url for one in await hooks.all()] == [False] * case["others"]
        made = await hooks.create()
        wanted = {"expires_at_ms": None, "secret": None, **case["made"]}
        assert asdict(made) == wanted
        if hooks.hooks.renew is not None:
            renewed = await hooks.renew(made)
            assert renewed is not None and renewed.expires_at_ms == case["renewed"]
        await hooks.delete(made.id)
    assert len(server.seen) == len(calls)
    for request, call in zip(server.seen, calls, strict=True):
        _is_as(request, call["asked"])
        assert request.headers["authorization"] == f"Bearer {CREDENTIAL}"
        if "sent" in call:
            is_form = request.headers["content-type"].startswith("application/x-www-form")
            sent = dict(parse_qsl(request.body.decode())) if is_form else orjson.loads(request.body)
            assert sent == call["sent"]
    keys = [request.headers["idempotency-key"] for request in server.seen if request.method != "GET"]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("service", sorted(PUSHED))
def test_a_delivery_is_proved_as_the_service_signs_it(service: str) -> None:
    hooks = PUSHED[service].connector.hooks
    assert hooks is not None
    secret = base64.b64encode(b"secret").decode()

    def proved(headers: dict[str, str], body: bytes = BODY, known: str | None = secret, later_s: int = 0) -> bool:
        try:
            prove(
                hooks.proof,
                known,
                Received("POST", {"content-type": "application/json", **headers}, [], body),
                (NOW_S + later_s) * 1000,
            )
        except DeliveryRefused:
            return False
        return True

    headers = SIGNED[service](secret.encode(), BODY)
    assert proved(headers)
    assert not proved(headers, known=base64.b64encode(b"other").decode()) and not proved(headers, known=None)
    if service != "outlook":
        assert not proved({}) and not proved(dict.fromkeys(headers, "x"))
    if service not in ("gitlab", "outlook"):
        assert not proved(headers, BODY + b" ")
    assert proved(headers, later_s=301) == (service != "stripe")
    assert service != "outlook" or not proved({}, b'{"value": [{"clientState": "c2VjcmV0"}, {}]}')


def test_a_document_whose_registration_lacks_a_field_is_refused() -> None:
    shop = HookedShop()
    shop.place = "127.0.0.1:1"
    document = shop.document()
    checked(document)
    document["hooks"]["create"]["path"] = "/hooks/{{region_name}}"
    with pytest.raises(BadRequest, match="'region_name'"):
        checked(document)
    del document["hooks"]
    with pytest.raises(BadRequest, match="The connector has no `hooks`"):
        checked(document)
