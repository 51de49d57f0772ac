from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from msgspec.structs import replace

from executor.open.engine import Engine
from server.app import create_app
from server.settings import Settings
from tests.support.endpoints import Request, answer
from tests.support.endpoints import http as served
from tests.support.oauth_provider import oauth_provider
from tests.unit.server.conftest import BASE
from tests.unit.server.http.test_auth_principals import token_of

VALUE = "a value of 20 letters"
SPEC = {"kind": "bearer", "hosts": ["API.example.com"], "secret": VALUE}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, allow_private=("127.0.0.0/8",))


@pytest.fixture
async def http(settings: Settings, engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(replace(settings, token="the-server-token"), engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        yield client


async def test_connections_are_added_listed_and_deleted_and_never_read(client: httpx.AsyncClient) -> None:
    made = await client.put("/api/connections/crm", json=SPEC)
    assert made.status_code == 200, made.text
    listed = await client.get("/api/connections")
    [one] = listed.json()["connections"]
    assert (one["name"], one["kind"], one["hosts"], one["state"]) == ("crm", "bearer", ["api.example.com"], "ready")
    assert listed.json()["redirect_uri"].endswith("/settings")
    assert (await client.get("/api/connections/crm/uses")).json() == {"used_by": []}
    for response in (made, listed, await client.get("/api/audit"), await client.get("/api/secrets")):
        assert VALUE not in response.text
    assert (await client.get("/api/secrets")).json() == {"secrets": []}
    assert (await client.delete("/api/secrets/connection:crm")).status_code == 404
    assert (await client.delete("/api/connections/crm")).status_code == 200
    assert (await client.delete("/api/connections/crm")).status_code == 404


async def test_what_is_refused_does_not_quote_the_value(client: httpx.AsyncClient) -> None:
    for name, body in (
        ("crm", {**SPEC, "kind": "other"}),
        ("crm", {**SPEC, "hosts": []}),
        ("crm", {**SPEC, "more": VALUE}),
        ("crm", {**SPEC, "secret": [VALUE]}),
        ("crm", {**SPEC, "kind": "oauth2_client"}),
        ("CRM", SPEC),
    ):
        refused = await client.put(f"/api/connections/{name}", json=body)
        assert refused.status_code in (400, 422), refused.text
        assert VALUE not in refused.text


async def test_a_provider_without_pkce(client: httpx.AsyncClient) -> None:
    """As Slack: no challenge is sent, and the client needs a secret."""
    [slack] = [one for one in (await client.get("/api/connections")).json()["providers"] if one["id"] == "slack"]
    assert slack["pkce"] is False and slack["hosts"] == ["slack.com"]
    assert slack["parameters"] == {} and slack["docs"].startswith("https://")
    spec = {**SPEC, "kind": "oauth2_code", "client_id": "1234", "pkce": slack["pkce"]}
    spec |= {name: slack[name] for name in ("hosts", "authorize_url", "token_url", "scopes", "client_auth")}
    refused = await client.put("/api/connections/crm", json={**spec, "secret": ""})
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/secret")
    assert (await client.put("/api/connections/crm", json=spec)).status_code == 200
    begun = (await client.post("/api/connections/crm/connect")).json()["url"]
    assert begun.startswith("https://slack.com/oauth/v2/authorize?") and "code_challenge" not in begun


async def test_a_sign_in_is_bound_to_who_began_it(http: httpx.AsyncClient) -> None:
    """Two administrators with tokens: what one began the other cannot end."""
    ada, eve = await token_of(http, "admin"), await token_of(http, "admin")
    async with oauth_provider() as provider:
        spec = provider.spec(authorize_url=f"{provider.url}/authorize")
        assert (await http.put("/api/connections/crm", json=spec, headers=ada)).status_code == 200
        begun = (await http.post("/api/connections/crm/connect", headers=ada)).json()
        assert begun["redirect_uri"] == parse_qs(urlsplit(begun["url"]).query)["redirect_uri"][0]
        said = provider.sign_in(begun["url"])
        refused = await http.post("/api/oauth/code", json=said, headers=eve)
        assert (refused.status_code, refused.json()["code"]) == (400, "oauth_state_invalid")
        assert provider.asked == []


async def test_a_test_asks_the_service_and_shows_no_credential(client: httpx.AsyncClient) -> None:
    def play(request: Request) -> bytes:
        known = request.headers.get("authorization") == f"Bearer {VALUE}"
        body = b'{"login": "octocat"}' if known else f'{{"message": "{VALUE} is wrong"}}'.encode()
        return answer(200 if known else 401, body, content_type="application/json")

    async with served(play) as service:
        spec = {**SPEC, "hosts": [f"http://{service.place}"], "check_url": f"{service.url}/me"}
        assert (await client.put("/api/connections/crm", json=spec)).status_code == 200
        [listed] = (await client.get("/api/connections")).json()["connections"]
        assert listed["check"] == f"GET {service.url}/me"
        stored = await client.post("/api/connections/crm/test", json={"service": "github", "base_url": service.url})
        typed = await client.post("/api/connections/crm/test", json={})
        other = {"connection": {**spec, "secret": "one that is not stored"}}
        tried = await client.post("/api/connections/new/test", json=other)
    assert stored.status_code == 200, stored.text
    assert stored.json() | {"took_ms": 0} == {
        "outcome": "ok", "ok": True, "status": 200, "who": "octocat", "message": "", "hint": "",
        "called": f"GET {service.url}/user", "took_ms": 0,
    }  # fmt: skip
    assert (typed.json()["outcome"], typed.json()["who"]) == ("ok", "")
    assert (tried.json()["outcome"], tried.json()["status"]) == ("refused", 401)
    assert (await client.post("/api/connections/new/test", json={})).status_code == 404
    wrong = await client.post("/api/connections/new/test", json={"connection": {**SPEC, "hosts": []}})
    assert wrong.status_code == 200 and wrong.json()["outcome"] == "nothing"
    wrong = await client.post("/api/connections/new/test", json={"connection": {**spec, "secret": "short"}})
    assert (wrong.status_code, wrong.json()["pointer"]) == (400, "/secret")
    audit = await client.get("/api/audit")
    for response in (stored, typed, tried, wrong, audit):
        assert VALUE not in response.text and "one that is not stored" not in response.text
