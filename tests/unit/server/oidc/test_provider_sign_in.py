"""Signing in by a provider on loopback, with real keys: honest, and lying in every way that a token can lie."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc import jwt
from msgspec.structs import asdict, replace
from starlette.applications import Starlette

from executor.kernel.store.topics.audit import AuditFilter
from executor.kernel.store.topics.people import UserRow
from executor.open.engine import Engine
from server.app import create_app
from server.http.errors import TooManyTries
from server.http.rates import RETURNS
from server.oidc import provider as provider_module
from server.oidc.settings import OidcSettings
from server.settings import Settings
from tests.support.oidc_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    LocalProvider,
    ec,
    local_provider,
    rsa,
    signed_with_the_public_key,
    unsigned,
)
from tests.unit.server.conftest import BASE

SERVER = {"authorization": "Bearer the-server-token"}
COOKIE = "weft_8765"


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    with local_provider() as provider:
        yield provider


class World:
    """One server, and a browser."""

    def __init__(self, settings: Settings, engine: Engine, provider: LocalProvider) -> None:
        self.settings, self.engine, self.provider = settings, engine, provider
        self.app: Starlette
        self.browser: httpx.AsyncClient
        self.configure(role="editor")

    def configure(self, **oidc: Any) -> None:
        mine = asdict(OidcSettings(self.provider.issuer, CLIENT_ID, CLIENT_SECRET, private=True)) | oidc
        own = {f"oidc_{name}": value for name, value in mine.items()}
        settings = replace(self.settings, token="the-server-token", **own)
        self.app = create_app(settings, self.engine)
        self.browser = self.other_browser()

    def other_browser(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=BASE)

    async def begin(self, to: str = "/") -> str:
        """Where the browser comes back to."""
        sent = await self.browser.get("/oidc/start", params={"to": to})
        assert sent.status_code == 303, sent.text
        return self.provider.authorize(sent.headers["location"])

    async def sign_in(self, to: str = "/") -> httpx.Response:
        self.browser.cookies.clear()
        return await self.browser.get(await self.begin(to))

    async def me(self) -> tuple[Any, ...]:
        answer = await self.browser.get("/api/me")
        return tuple(answer.json()[name] for name in ("user", "via", "role", "name")) if answer.is_success else ()

    async def refusals(self) -> list[str]:
        return [row.detail for row in await self.engine.store.list_audit(wanted=AuditFilter(actor="unknown"))]


@pytest.fixture
async def world(settings: Settings, engine: Engine, provider: LocalProvider) -> AsyncIterator[World]:
    world = World(settings, engine, provider)
    yield world
    await world.app.state.oidc.close()


async def test_a_person_signs_in_and_out(world: World) -> None:
    page = await world.browser.get("/sign-in")
    assert f"Sign in with 127.0.0.1:{urlsplit(world.provider.issuer).port}" in page.text
    assert 'href="/oidc/start"' in (await world.browser.get("/")).text, "in place of the editor"
    back = await world.begin("/runs?workflow=a")
    assert "SameSite=lax" in str(world.browser.cookies.jar) or f"{COOKIE}-oidc" in world.browser.cookies
    signed = await world.browser.get(
        back, headers={"user-agent": "A browser\x01", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    )
    assert signed.status_code == 200 and signed.headers["refresh"] == "0; url=/runs?workflow=a"
    assert f"{COOKIE}-oidc" not in world.browser.cookies
    assert any("SameSite=strict" in each and "HttpOnly" in each for each in signed.headers.get_list("set-cookie"))
    assert await world.me() == ("ada@example.com", "session", "editor", "Ada")
    [session] = (await world.browser.get("/api/me/sessions")).json()["sessions"]
    assert (session["device"], session["current"]) == ("A browser", True)
    rows = (await world.browser.get("/api/audit", headers=SERVER)).json()["rows"]
    acts = [(row["actor"], row["via"], row["action"], row["detail"]) for row in rows]
    assert acts == [
        ("user:ada@example.com", "oidc", "GET /oidc/callback", ""),
        ("oidc", "oidc", "GET /oidc/callback", "ada"),
    ]
    assert (await world.browser.post("/logout")).is_success and await world.me() == ()


async def leave(world: World) -> str | None:
    """Where the browser is sent that has signed out."""
    answer = await world.browser.post("/logout")
    assert answer.json()["signed_in"] is False and await world.me() == ()
    return answer.json()["at_provider"]  # type: ignore[no-any-return]  # text or null


def with_sign_out(world: World) -> None:
    world.provider.described["end_session_endpoint"] = f"{world.provider.issuer}/end_session_endpoint"


async def test_signing_out_is_at_the_provider_too(world: World) -> None:
    with_sign_out(world)
    signed = await world.sign_in()
    [kept] = [each for each in signed.headers.get_list("set-cookie") if each.startswith(f"{COOKIE}-id=")]
    assert all(part in kept for part in ("Path=/logout;", "HttpOnly", "SameSite=strict"))
    assert "weft_8765-id" not in (await world.browser.get("/api/me")).request.headers["cookie"], "with /logout alone"
    to = await leave(world)
    assert to is not None and world.provider.sign_out(to) == f"{BASE}/"
    assert world.provider.signed_out == ["ada"]
    assert await leave(world) is None, "there was no session"


async def test_an_id_token_that_no_cookie_can_hold_is_no_hint(world: World) -> None:
    with_sign_out(world)
    world.provider.person["groups"] = ["x" * 4_000]
    await world.sign_in()
    to = await leave(world)
    assert to is not None and "id_token_hint" not in to
    assert world.provider.sign_out(to) == f"{BASE}/"


async def test_only_a_session_of_the_provider_ends_there(world: World) -> None:
    with_sign_out(world)
    await world.sign_in()
    assert (await world.browser.post("/login", json={"token": "the-server-token"})).is_success
    assert await leave(world) is None, "the token of the server began this session"


@pytest.mark.parametrize(
    "described", [None, 7, "javascript:alert(1)", "ftp://example.com/", "http://a.example/\r\nb: c"]
)
async def test_a_provider_without_such_a_page(world: World, described: Any) -> None:
    world.provider.described["end_session_endpoint"] = described
    assert (await world.sign_in()).status_code == 200
    assert await leave(world) is None


async def test_who_signs_out_while_the_provider_is_down(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "KEPT_S", 0.0)
    with_sign_out(world)
    await world.sign_in()
    world.provider.is_down = True
    assert await leave(world) is None, "the session has ended all the same"


async def test_a_person_is_known_by_issuer_and_subject(world: World) -> None:
    await world.sign_in()
    world.provider.person |= {"email": "ada@other.example", "name": "Ada B"}
    await world.sign_in()
    assert (await world.me())[0] == "ada@example.com", "the same person under another address"
    world.provider.person |= {"sub": "eve", "email": "ada@example.com", "name": "Eve"}
    await world.sign_in()
    other = (await world.me())[0]
    assert other.startswith("oidc-"), "another person under the same address"
    assert len(await world.engine.store.list_users()) == 2


async def test_an_address_that_is_not_verified_names_no_one(world: World) -> None:
    world.provider.person["email_verified"] = False
    await world.sign_in()
    assert (await world.me())[0].startswith("oidc-")
    await world.engine.store.put_user(UserRow("bob@example.com", "Bob", "admin", 0))
    world.provider.person |= {"sub": "eve", "email": "bob@example.com"}
    await world.sign_in()
    assert (await world.me())[2] == "editor", "not the admin Bob"


async def test_without_a_role_only_invited_people_sign_in(world: World) -> None:
    world.configure()
    refused = await world.sign_in()
    assert (refused.status_code, await world.me()) == (403, ())
    assert "There is no user ada@example.com here" in refused.text
    assert (await world.refusals())[0].startswith("refused: oidc, There is no user ada@example.com here")
    assert await world.engine.store.list_users() == []
    await world.browser.post("/api/users", json={"id": "ada@example.com", "role": "approver"}, headers=SERVER)
    await world.sign_in()
    assert (await world.me())[:3] == ("ada@example.com", "session", "approver")


async def test_domains_and_groups(world: World) -> None:
    world.configure(domains=("Example.com",), groups=("staff=viewer", "ops=admin"), groups_claim="teams")
    person = world.provider.person
    for change, status, role in (
        ({}, 403, None),
        ({"teams": ["staff"]}, 200, "viewer"),
        ({"teams": ["staff", "ops", 5, None]}, 200, "admin"),
        ({"teams": "staff"}, 200, "viewer"),
        ({"teams": []}, 403, None),
        ({"teams": ["ops"], "email": "ada@example.com.evil.test"}, 403, None),
        ({"teams": ["ops"], "email": "ada@example.com", "email_verified": "false"}, 403, None),
        ({"email_verified": "true"}, 200, "admin"),
        ({"teams": {"ops": 1}}, 403, None),
    ):
        person |= change
        answer = await world.sign_in()
        assert (answer.status_code, (await world.me() or (None,) * 4)[2]) == (status, role), change
    assert len(await world.engine.store.list_users()) == 1


LIES: dict[str, dict[str, Any]] = {
    "issuer": {"iss": "https://evil.test"},
    "issuer with a slash": {"iss": "SLASH"},
    "audience": {"aud": "another"},
    "audiences without azp": {"aud": [CLIENT_ID, "another"]},
    "azp": {"aud": [CLIENT_ID, "another"], "azp": "another"},
    "azp alone": {"azp": "another"},
    "no audience": {"aud": None},
    "expired": {"exp": 1},
    "no exp": {"exp": None},
    "exp as text": {"exp": "9999999999"},
    "no iat": {"iat": None},
    "old": {"iat": 1},
    "of tomorrow": {"iat": 4_000_000_000},
    "not yet": {"nbf": 4_000_000_000},
    "nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": ""},
    "subject of another kind": {"sub": ["ada"]},
    "subject with a line": {"sub": "a\nb"},
}


async def refused(world: World) -> str:
    answer = await world.sign_in()
    assert (answer.status_code, await world.me()) == (403, ())
    assert await world.engine.store.list_users() == []
    return answer.text


async def test_no_guesses_keep_out_who_comes_back_from_the_provider(world: World) -> None:
    rates = world.app.state.auth.rates
    with pytest.raises(TooManyTries):
        while True:
            rates.login_missed("127.0.0.1")
    assert (await world.sign_in()).status_code == 200


async def test_a_copy_of_a_callback_does_not_ask_the_provider_without_an_end(world: World) -> None:
    world.provider.change = lambda claims: claims.update(aud="another")
    back = await world.begin()
    cookie = world.browser.cookies[f"{COOKIE}-oidc"]
    for count in range(RETURNS + 1):
        world.browser.cookies.set(f"{COOKIE}-oidc", cookie)
        answer = await world.browser.get(back)
        assert (answer.status_code == 429) == (count == RETURNS)


async def test_claims_that_lie_are_refused(world: World) -> None:
    for what, lie in LIES.items():
        said = {name: f"{world.provider.issuer}/" if value == "SLASH" else value for name, value in lie.items()}

        def change(claims: dict[str, Any], said: dict[str, Any] = said) -> None:
            claims.update(said)
            for name in [name for name, value in said.items() if value is None]:
                del claims[name]

        world.provider.change = change
        assert "does not count" in await refused(world), what
    world.provider.change = lambda claims: claims.update(aud=[CLIENT_ID, "another"], azp=CLIENT_ID)
    assert (await world.sign_in()).status_code == 200


async def test_signatures_that_lie_are_refused(world: World) -> None:
    provider = world.provider
    provider.forge = unsigned
    assert "the algorithm &#x27;none&#x27; is not accepted" in await refused(world)
    provider.forge = signed_with_the_public_key(provider.own)
    assert "the algorithm &#x27;HS256&#x27; is not accepted" in await refused(world)
    stranger = rsa("one")
    provider.forge = lambda header, claims: jwt.encode(header, claims, stranger)
    assert "the signature does not fit" in await refused(world)
    provider.forge = lambda header, claims: jwt.encode(
        {**header, "jwk": stranger.as_dict(private=False)}, claims, stranger
    )
    await refused(world)
    provider.forge = lambda header, claims: jwt.encode(header, claims, provider.signing).rpartition(".")[0] + "."
    await refused(world)
    provider.forge = lambda header, claims: "not a token"
    assert "it is not a token" in await refused(world)
    provider.forge = lambda header, claims: "a" * 70_000
    assert "too large" in await refused(world)


async def test_a_weak_key_or_one_for_something_else_is_refused(world: World) -> None:
    provider = world.provider
    with pytest.warns(Warning):
        provider.keys = [weak := rsa("weak", 1024)]
    provider.signing = weak
    assert "fewer than 2048 bits" in await refused(world)


@pytest.mark.parametrize("alg", ["RS512", "PS256", "ES256"])
async def test_other_algorithms(world: World, alg: str) -> None:
    provider = world.provider
    provider.alg = alg
    if alg == "ES256":
        provider.keys = [rsa("one"), ec("two")]
        provider.signing = provider.keys[1]
    assert (await world.sign_in()).status_code == 200


async def test_keys_are_kept_and_asked_for_again_within_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, now_s = world.provider, 1000.0
    monkeypatch.setattr(world.app.state.oidc.provider, "_now_s", lambda: now_s)

    def asked(path: str) -> int:
        return provider.asked.count(path)

    for _ in range(3):
        assert (await world.sign_in()).status_code == 200
    assert asked("/jwks_uri") == 1 and asked("/.well-known/openid-configuration") == 1
    provider.keys = [rsa("two")]  # rotation
    provider.signing = provider.keys[0]
    assert (await world.sign_in()).status_code == 403, "the keys were asked for a moment ago"
    now_s += provider_module.ASK_AGAIN_S
    assert (await world.sign_in()).status_code == 200 and asked("/jwks_uri") == 2
    provider.signing = rsa("unknown")
    for _ in range(3):
        assert (await world.sign_in()).status_code == 403
    assert asked("/jwks_uri") == 2
    now_s += provider_module.KEPT_S
    provider.signing = provider.keys[0]
    assert (await world.sign_in()).status_code == 200
    assert asked("/jwks_uri") == 3 and asked("/.well-known/openid-configuration") == 2


async def test_the_end_belongs_to_the_beginning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    back = await world.begin()
    stranger = world.other_browser()
    assert (await stranger.get(back)).status_code == 400, "a link to the end of another's sign-in"
    other = await world.begin()  # in the same browser: only the last one counts
    assert (await world.browser.get(back)).status_code == 400
    again = dict(world.browser.cookies)
    assert (await world.browser.get(other)).status_code == 200
    world.browser.cookies.update(again)
    used = await world.browser.get(other)  # the provider knows that the code was used
    assert used.status_code == 502 and "invalid_grant" in used.text
    assert (await world.browser.get("/oidc/callback")).status_code == 400
    world.browser.cookies.clear()
    back = await world.begin()
    forged = world.browser.cookies[f"{COOKIE}-oidc"]
    for value in (forged[:-1] + ("0" if forged[-1] != "0" else "1"), "x.y", "", "é"):
        headers = {b"cookie": f"{COOKIE}-oidc={value}".encode()}
        assert (await world.other_browser().get(back, headers=headers)).status_code == 400
    now_ms = world.engine.parts.clock.now_ms()
    monkeypatch.setattr(world.engine.parts.clock, "now_ms", lambda: now_ms + 600_001)
    assert (await world.browser.get(back)).status_code == 400


async def test_the_answer_of_another_provider_is_refused(world: World) -> None:
    back = await world.begin()
    mixed = back.replace("iss=http%3A%2F%2F127", "iss=http%3A%2F%2F128")
    assert mixed != back and "of another provider" in (await world.browser.get(mixed)).text
    assert "/token_endpoint" not in world.provider.asked
    state = dict(parse_qsl(urlsplit(await world.begin()).query))["state"]
    said = await world.browser.get("/oidc/callback", params={"state": state, "error": "<b>access_denied"})
    assert said.status_code == 403 and "&lt;b&gt;access_denied" in said.text


@pytest.mark.parametrize(
    "to",
    ["//evil.test", "https://evil.test", "/\\evil.test", "\\\\evil.test", "/a b", "/a\r\nx: y", "", "/" + "a" * 1001],
)
async def test_the_end_is_a_page_of_this_server(world: World, to: str) -> None:
    assert (await world.sign_in(to)).headers["refresh"] == "0; url=/"


async def test_a_provider_that_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, now_s = world.provider, 1000.0
    monkeypatch.setattr(world.app.state.oidc.provider, "_now_s", lambda: now_s)
    provider.is_down = True
    for _ in range(3):
        answer = await world.browser.get("/oidc/start")
        assert answer.status_code == 502 and "You cannot sign in now" in answer.text
    assert provider.asked == ["/.well-known/openid-configuration"], "not for each request"
    provider.is_down = False
    now_s += provider_module.FAILED_S
    for described in (
        {"issuer": "https://evil.test"},
        {"token_endpoint": "file:///etc/passwd"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ):
        provider.described = described
        assert (await world.browser.get("/oidc/start")).status_code == 502, described
        now_s += provider_module.FAILED_S
    provider.described = {}
    back = await world.begin()
    provider.is_down = True
    assert (await world.browser.get(back)).status_code == 502 and await world.me() == ()


async def test_a_private_provider_must_be_allowed(world: World) -> None:
    world.configure(private=False)
    answer = await world.browser.get("/oidc/start")
    assert answer.status_code == 502 and world.provider.asked == []


async def test_without_a_provider_there_is_nothing(locked: httpx.AsyncClient) -> None:
    for path in ("/oidc/start", "/oidc/callback?state=x&code=y"):
        assert (await locked.get(path)).status_code == 404
    assert "/oidc/start" not in (await locked.get("/sign-in")).text
