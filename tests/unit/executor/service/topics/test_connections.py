"""Connections against a provider on this machine, with whole engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from executor.blocks.vault.connection import PREFIX, Connection, Credential, Provider, opened, sealed
from executor.errors import BadRequest, BlockError, Conflict, DatabaseWriteFailed, NotFound
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.documents import chain
from tests.support.endpoints import answer, http
from tests.support.oauth_provider import CLIENT_ID, CLIENT_SECRET, oauth_provider
from tests.support.oauth_provider import Provider as LocalProvider

KEY = b"k" * 32
TOKEN = "t0ken-of-the+service"
ADA = "user:ada session-1"


def value_of(credential: Credential) -> str:
    found = credential.opened(credential.value)
    assert found is not None
    return found[1]


@asynccontextmanager
async def opened_engine(path: Path, *places: str, **more: Any) -> AsyncIterator[Engine]:
    async with open_engine(path / "weft.db", secret=KEY, allow_private=places, **more) as engine:
        yield engine


def oauth(provider: LocalProvider, kind: Any = "oauth2_code", **more: Any) -> Connection:
    there = Provider(
        f"{provider.url}/token", CLIENT_ID, f"{provider.url}/authorize", "read write", provider.url, **more
    )
    return Connection(kind, CLIENT_SECRET, provider=there)


async def connected(engine: Engine, provider: LocalProvider, name: str = "crm") -> None:
    await engine.connections.put(name, oauth(provider), [f"http://{provider.place}"], by="ada")
    await sign_in(engine, provider, name)


async def sign_in(engine: Engine, provider: LocalProvider, name: str = "crm") -> None:
    begun = await engine.connections.begin(name, ADA)
    said = provider.sign_in(begun.url)
    view = await engine.connections.end(said["state"], ADA, code=said["code"], issuer=said["iss"])
    assert view.state == "ready"


async def ask(engine: Engine, url: str, name: str = "crm", **params: Any) -> RunView:
    given = {"url": url, "connection": name, **params}
    return await engine.run(chain("a", a={"type": "http", "params": given} | _once()), {}, timeout_s=60)


def _once() -> dict[str, Any]:
    return {"policy": {"retry": {"max_attempts": 1}}}


def code_of(run: RunView) -> str | None:
    return None if run.error is None else str(run.error["code"])


async def expire(engine: Engine, name: str = "crm") -> str:
    """Have its token end; returns it."""
    [row] = await engine.store.get_secrets([PREFIX + name])
    keys = engine.parts.vault.need_keys()
    connection = opened(keys, row)
    assert connection.tokens is not None
    ended = replace(connection, tokens=replace(connection.tokens, expires_at_ms=1))
    assert await engine.store.put_secret(sealed(keys, row, ended))
    return connection.tokens.access


# --- what a request gets


@pytest.mark.parametrize(
    ("connection", "header", "target"),
    [
        (Connection("bearer", TOKEN), f"Bearer {TOKEN}", "/x?a=1"),
        (Connection("basic", TOKEN, "ada"), "Basic YWRhOnQwa2VuLW9mLXRoZStzZXJ2aWNl", "/x?a=1"),
        (Connection("api_key", TOKEN, prefix="Key "), f"Key {TOKEN}", "/x?a=1"),
        (Connection("api_key", TOKEN, where="query", name="api key"), None, f"/x?a=1&api%20key={TOKEN}"),
    ],
)
async def test_each_kind_goes_to_its_place(
    tmp_path: Path, connection: Connection, header: str | None, target: str
) -> None:
    async with (
        http(lambda r: answer(200, repr(r).encode())) as service,
        opened_engine(tmp_path, service.place) as engine,
    ):
        await engine.connections.put("crm", connection, [f"http://{service.place}"], by="ada")
        run = await ask(engine, f"{service.url}/x?a=1#part", headers={"authorization": "author"})
        assert run.status == "succeeded", run.error
        [seen] = service.seen
        assert seen.headers.get("authorization") == (header or "author")
        assert seen.target == target.replace("+", "%2B" if header is None else "+")
        [view] = await engine.connections.all()
        assert (view.state, view.created_by) == ("ready", "ada") and view.last_used_at_ms is not None
        assert await engine.secrets.all() == []
        records = repr([record.data for record in await engine.store.read_events(run.id)])
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    for spelled in (TOKEN, TOKEN.replace("+", "%2B"), "t0ken-of"):
        assert spelled not in repr(run) + records and spelled.encode() not in data


async def test_it_goes_to_its_hosts_alone_also_after_a_redirect(tmp_path: Path) -> None:
    async with http(lambda _: answer(200)) as other:
        async with (
            http(lambda r: answer(302, location=f"{other.url}/{r.headers['authorization']}")) as service,
            opened_engine(tmp_path, service.place, other.place) as engine,
        ):
            await engine.connections.put("crm", Connection("bearer", TOKEN), [f"http://{service.place}"])
            for url in (other.url, service.url):
                run = await ask(engine, url)
                assert code_of(run) == "secret_host_refused" and run.error is not None
                assert "the connection crm cannot be sent" in run.error["message"]
        assert other.seen == []


async def test_a_connection_that_is_not_there(tmp_path: Path) -> None:
    async with opened_engine(tmp_path) as engine:
        assert code_of(await ask(engine, "http://127.0.0.1:9/")) == "connection_unknown"
        await engine.secrets.set("API_KEY", "value of a secret", ["127.0.0.1"])
        with pytest.raises(NotFound):
            await engine.connections.delete("API_KEY")
        await engine.connections.put("crm", Connection("bearer", TOKEN), ["127.0.0.1"])
        with pytest.raises(NotFound):
            await engine.secrets.delete("connection:crm")
        await engine.connections.delete("crm")
        assert await engine.connections.all() == []


@pytest.mark.parametrize(
    ("connection", "hosts", "pointer"),
    [
        (Connection("bearer"), ["a.test"], "/secret"),
        (Connection("bearer", "short"), ["a.test"], "/secret"),
        (Connection("bearer", "with a\nnew line"), ["a.test"], "/secret"),
        (Connection("ssh", "a password"), ["a.test:22"], "/username"),
        (Connection("ssh", "two\nlines of text", "ada"), ["a.test:22"], "/secret"),
        (Connection("ssh", "a password", "ada", passphrase="x"), ["a.test:22"], "/passphrase"),
        (Connection("ssh", "-----BEGIN X\nkey", "ada", passphrase="x\ny"), ["a.test:22"], "/passphrase"),
        (Connection("ssh", "a password", "ada", host_key="MD5:00"), ["a.test:22"], "/host_key"),
        (Connection("ssh", "a password", "ada", check_url="https://a.test"), ["a.test:22"], "/check_url"),
        (Connection("bearer", TOKEN), [], "/hosts"),
        (Connection("bearer", TOKEN), ["http://a.test"], "/hosts"),
        (Connection("basic", TOKEN), ["a.test"], "/username"),
        (Connection("basic", TOKEN, "a:b"), ["a.test"], "/username"),
        (Connection("api_key", TOKEN, name="a b"), ["a.test"], "/name"),
        (Connection("api_key", TOKEN, name="Host"), ["a.test"], "/name"),
        (Connection("oauth2_code", provider=Provider("https://a.test/t", "c")), ["a.test"], "/authorize_url"),
        (Connection("oauth2_client", TOKEN, provider=Provider("http://a.test/t", "c")), ["a.test"], "/token_url"),
        (Connection("oauth2_client", TOKEN, provider=Provider("https://u:p@a.test", "c")), ["a.test"], "/token_url"),
        (Connection("oauth2_client", TOKEN, provider=Provider("https://a.test/t", "")), ["a.test"], "/client_id"),
    ],
)
async def test_what_is_refused(tmp_path: Path, connection: Connection, hosts: list[str], pointer: str) -> None:
    async with opened_engine(tmp_path) as engine:
        with pytest.raises(BadRequest) as refused:
            await engine.connections.put("crm", connection, hosts)
        assert refused.value.pointer == pointer
        with pytest.raises(BadRequest, match="small letters"):
            await engine.connections.put("CRM", Connection("bearer", TOKEN), ["a.test"])


async def test_what_names_it(tmp_path: Path) -> None:
    async with opened_engine(tmp_path) as engine:
        await engine.connections.put("crm", Connection("bearer", TOKEN), ["a.test"])
        document = chain("a", a={"type": "http", "params": {"url": "http://a.test", "connection": "crm"}})
        await engine.workflows.save(document | {"name": "asks"})
        other = chain("a", a={"type": "http", "params": {"url": "http://a.test", "connection": "else"}})
        await engine.workflows.save(other | {"name": "other"})
        assert [(use.name, use.blocks) for use in await engine.connections.used_by("crm")] == [("asks", ("a",))]


async def test_a_name_without_a_connection_is_a_warning(tmp_path: Path) -> None:
    async with opened_engine(tmp_path) as engine:
        await engine.connections.put("crm-of-sales", Connection("bearer", TOKEN), ["a.test"])
        params = {"url": "http://a.test", "connection": "crm-of-sale", "body": {"connection": "is-a-body"}}
        tool = {"name": "t", "block": "http", "params": {"url": "http://a.test", "connection": "zzz"}}
        server = {"name": "s", "mcp": {"url": "http://a.test", "connection": "crm-of-sales"}}
        agent = {"model": "openai:m", "prompt": "x", "connection": "qqq", "tools": [tool, server]}
        document = chain("a", "b", a={"type": "http", "params": params}, b={"type": "agent", "params": agent})

        async def found() -> list[tuple[str, str]]:
            listed = await engine.workflows.validate(document)
            return [(each.pointer, each.severity) for each in listed if each.code == "connection_unknown"]

        assert await found() == [
            ("/blocks/a/params/connection", "warning"),
            ("/blocks/b/params/connection", "warning"),
            ("/blocks/b/params/tools/0/params/connection", "warning"),
        ]
        saved = await engine.workflows.save(document | {"name": "asks"})
        warned = [each for each in saved.diagnostics if each.code == "connection_unknown"]
        assert len(warned) == 3 and warned[0].hint == 'Did you mean "crm-of-sales"?'
        draft = await engine.drafts.create(document, name="d")
        assert len([each for each in draft.diagnostics if each.code == "connection_unknown"]) == 3
        for name in ("crm-of-sale", "zzz", "qqq"):
            await engine.connections.put(name, Connection("bearer", TOKEN), ["a.test"])
        assert await found() == []


# --- sign-in


async def test_signing_in_and_what_is_never_shown(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await engine.connections.put("crm", oauth(provider), [f"http://{provider.place}"], by="ada")
        assert [view.state for view in await engine.connections.all()] == ["sign_in"]
        asks = chain("a", a={"type": "http", "params": {"url": provider.url, "connection": "crm"}})
        (found,) = await engine.workflows.validate(asks)
        assert (found.code, found.pointer) == ("connection_needs_sign_in", "/blocks/a/params/connection")
        run = await ask(engine, provider.url)
        assert code_of(run) == "connection_needs_sign_in" and provider.seen == []
        await sign_in(engine, provider)
        assert await engine.workflows.validate(asks) == []
        run = await ask(engine, provider.url)
        assert run.status == "succeeded", run.error
        assert provider.asked[0]["redirect_uri"] == "http://127.0.0.1:8765/settings"
        [token] = provider.access
        [refresh] = provider.refresh
        shown = repr(run) + repr(await engine.connections.all())
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    for value in (token, refresh, CLIENT_SECRET):
        assert value not in shown and value.encode() not in data


async def test_a_provider_without_pkce(tmp_path: Path) -> None:
    """As Slack, which calls a bearer token that of a bot. A challenge that was sent would be asked for."""
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        provider.token_type = "bot"
        with pytest.raises(BadRequest) as refused:
            without = replace(oauth(provider, pkce=False), secret="")
            await engine.connections.put("crm", without, [f"http://{provider.place}"])
        assert refused.value.pointer == "/secret"
        await engine.connections.put("crm", oauth(provider, pkce=False), [f"http://{provider.place}"])
        await sign_in(engine, provider)
        assert "code_verifier" not in provider.asked[-1]
        assert (await ask(engine, provider.url)).status == "succeeded"
        await expire(engine)
        assert (await ask(engine, provider.url)).status == "succeeded"
        assert [one["grant_type"] for one in provider.asked] == ["authorization_code", "refresh_token"]


async def test_a_sign_in_counts_once_for_who_began_it_and_for_ten_minutes(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        connections = engine.connections
        await connections.put("crm", oauth(provider), [f"http://{provider.place}"])
        said = provider.sign_in((await connections.begin("crm", ADA)).url)
        state, code = said["state"], said["code"]
        with pytest.raises(BadRequest, match="another session"):
            await connections.end(state, "user:eve session-2", code=code)
        for wrong in ("crm.x", "none.x", "", f"{state}x"):
            with pytest.raises(BadRequest, match="has ended"):
                await connections.end(wrong, ADA, code=code)
        again = provider.sign_in((await connections.begin("crm", ADA)).url)
        with pytest.raises(BadRequest, match="has ended"):  # begun again
            await connections.end(state, ADA, code=code)
        await connections.end(again["state"], ADA, code=again["code"])
        with pytest.raises(BadRequest, match="has ended"):  # used
            await connections.end(again["state"], ADA, code=again["code"])
        late = provider.sign_in((await connections.begin("crm", ADA)).url)
        [row] = await engine.store.get_secrets([PREFIX + "crm"])
        keys = engine.parts.vault.need_keys()
        one = opened(keys, row)
        assert one.pending is not None
        await engine.store.put_secret(sealed(keys, row, replace(one, pending=replace(one.pending, until_ms=1))))
        with pytest.raises(BadRequest, match="10 minutes"):
            await connections.end(late["state"], ADA, code=late["code"])
        assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"said": "access_denied", "code": ""}, "oauth_denied"),
        ({"code": ""}, "oauth_denied"),
        ({"code": "of another sign-in"}, "oauth_refused"),
        ({"issuer": "https://evil.test"}, "oauth_issuer_wrong"),
    ],
)
async def test_what_a_provider_says_instead(tmp_path: Path, said: dict[str, str], code: str) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await engine.connections.put("crm", oauth(provider), [f"http://{provider.place}"])
        given = provider.sign_in((await engine.connections.begin("crm", ADA)).url)
        with pytest.raises(BadRequest) as refused:
            await engine.connections.end(given["state"], ADA, **({"code": given["code"]} | said))
        assert refused.value.code == code
        assert [view.state for view in await engine.connections.all()] == ["sign_in"]


@pytest.mark.parametrize(
    ("answered", "code"),
    [
        (answer(500), "oauth_failed"),
        (answer(302, location="http://127.0.0.1:9/"), "oauth_refused"),
        (answer(200, b"no JSON"), "oauth_refused"),
        (answer(200, b'{"access_token": "short"}'), "oauth_refused"),
        (answer(200, b'{"access_token": "with a\\nnew line"}'), "oauth_refused"),
        (answer(200, b'{"access_token": "long enough", "token_type": "mac"}'), "oauth_refused"),
        (answer(200, b'{"error": "bad_verification_code"}'), "oauth_refused"),
        (answer(200, b"x" * 70_000), "response_too_large"),
    ],
)
async def test_answers_that_are_no_token(tmp_path: Path, answered: bytes, code: str) -> None:
    async with oauth_provider(answers=answered) as provider, opened_engine(tmp_path, provider.place) as engine:
        await engine.connections.put("crm", oauth(provider, "oauth2_client"), [f"http://{provider.place}"])
        assert code_of(await ask(engine, provider.url)) == code
        assert provider.seen == []


async def test_only_a_code_is_signed_in_to(tmp_path: Path) -> None:
    async with opened_engine(tmp_path) as engine:
        await engine.connections.put("crm", Connection("bearer", TOKEN), ["a.test"])
        with pytest.raises(Conflict, match="no one signs in"):
            await engine.connections.begin("crm", ADA)
        with pytest.raises(NotFound):
            await engine.connections.begin("none", ADA)


# --- renewal


@pytest.mark.parametrize("client_auth", ["body", "header"])
async def test_the_credentials_of_a_client(tmp_path: Path, client_auth: str) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        connection = oauth(provider, "oauth2_client", client_auth=client_auth)
        await engine.connections.put("crm", connection, [f"http://{provider.place}"])
        for _ in range(2):
            assert (await ask(engine, provider.url)).status == "succeeded"
        assert [each["grant_type"] for each in provider.asked] == ["client_credentials"]
        await expire(engine)
        assert (await ask(engine, provider.url)).status == "succeeded"
        assert len(provider.asked) == 2


async def test_an_expired_token_is_renewed_before_it_is_used(tmp_path: Path) -> None:
    """Also in another process, days later."""
    async with oauth_provider() as provider:
        async with opened_engine(tmp_path, provider.place) as engine:
            await connected(engine, provider)
            old = await expire(engine)
        async with opened_engine(tmp_path, provider.place) as engine:
            assert (await ask(engine, provider.url)).status == "succeeded"
            assert [old in request.headers["authorization"] for request in provider.seen] == [False]
            assert [each["grant_type"] for each in provider.asked] == ["authorization_code", "refresh_token"]


async def test_a_token_that_is_refused_is_renewed_once_within_the_attempt(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        provider.access.clear()
        run = await ask(engine, provider.url, method="POST", body={"x": 1})
        assert run.status == "succeeded", run.error
        assert [request.body for request in provider.seen] == [b'{"x":1}'] * 2
        assert len({request.headers["idempotency-key"] for request in provider.seen}) == 1
        provider.expires_in = None
        provider.takes_none = True
        assert code_of(await ask(engine, provider.url)) == "http_status"
        assert len(provider.asked) == 3 and len(provider.seen) == 4


async def test_a_refused_renewal_is_said_by_the_block_and_by_the_connection(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        await expire(engine)
        provider.refresh.clear()
        for _ in range(2):
            run = await ask(engine, provider.url)
            assert code_of(run) == "connection_needs_sign_in" and run.error is not None
            assert "invalid_grant" in run.error["message"]
        assert len(provider.asked) == 2, "asked once"
        [view] = await engine.connections.all()
        assert view.state == "sign_in_again" and "invalid_grant" in view.problem
        await sign_in(engine, provider)
        assert (await ask(engine, provider.url)).status == "succeeded"


@pytest.mark.parametrize("error", ["temporarily_unavailable", "invalid_client"])
async def test_other_refusals_end_no_sign_in(tmp_path: Path, error: str) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        await expire(engine)
        provider.refuses = error
        assert code_of(await ask(engine, provider.url)) in ("oauth_failed", "oauth_refused")
        provider.refuses = ""
        assert (await ask(engine, provider.url)).status == "succeeded"


async def test_one_of_many_renews(tmp_path: Path) -> None:
    """Blocks of one process, and another process on the same database."""
    async with oauth_provider() as provider:
        async with (
            opened_engine(tmp_path, provider.place) as one,
            opened_engine(tmp_path, provider.place) as two,
        ):
            await connected(one, provider)
            await expire(one)
            provider.gate.clear()
            asked = [asyncio.create_task(engine.parts.connections.get("crm")) for engine in (one, two, one, two, one)]
            while len(provider.asked) < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.6)  # the others look twice meanwhile
            provider.gate.set()
            found = {value_of(credential) for credential in await asyncio.gather(*asked)}
        assert len(found) == 1 and len(provider.asked) == 2


async def test_the_end_of_an_attempt_does_not_lose_a_token(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        await expire(engine)
        provider.gate.clear()
        attempt = asyncio.create_task(engine.parts.connections.get("crm"))
        while len(provider.asked) < 2:
            await asyncio.sleep(0.01)
        attempt.cancel()
        provider.gate.set()
        credential = await engine.parts.connections.get("crm")
        assert value_of(credential) in provider.access and len(provider.asked) == 2


async def test_a_lease_of_a_process_that_is_gone_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the answer of the provider and the database: with refresh tokens that count once, people sign in
    again; with others, the next process renews."""
    for rotates in (True, False):
        path = tmp_path / str(rotates)
        path.mkdir()
        async with oauth_provider(rotates=rotates) as provider:
            async with opened_engine(path, provider.place) as engine:
                await connected(engine, provider)
                await expire(engine)

                async def killed(*_: Any) -> Any:
                    raise KeyError("killed")

                monkeypatch.setattr(engine.parts.connections, "_change", killed)
                with pytest.raises(KeyError):
                    await engine.parts.connections.get("crm")
            async with opened_engine(path, provider.place) as engine:
                now_ms = engine.parts.clock.now_ms() + 15_001
                monkeypatch.setattr(engine.parts.connections, "_now_ms", partial(int, now_ms))
                if rotates:
                    with pytest.raises(BlockError, match="needs a new sign-in"):
                        await engine.parts.connections.get("crm")
                else:
                    assert value_of(await engine.parts.connections.get("crm")) in provider.access


async def test_a_provider_may_take_longer_than_a_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease is renewed meanwhile, so no other process uses the same refresh token."""
    async with oauth_provider() as provider:
        async with (
            opened_engine(tmp_path, provider.place) as one,
            opened_engine(tmp_path, provider.place) as two,
        ):
            for engine in (one, two):
                monkeypatch.setattr(engine.parts.connections, "_lease_ms", 300)
            await connected(one, provider)
            await expire(one)
            provider.gate.clear()
            asked = [asyncio.create_task(engine.parts.connections.get("crm")) for engine in (one, two)]
            while len(provider.asked) < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(1.5)
            provider.gate.set()
            found = {value_of(credential) for credential in await asyncio.gather(*asked)}
        assert len(found) == 1 and len(provider.asked) == 2


async def test_what_could_not_be_stored_is_stored_by_the_next_call(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("executor.kernel.store.patience.PAUSES_S", ())
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        await expire(engine)
        put, connections = engine.store.put_secret, engine.parts.connections

        async def full(row: Any) -> bool:
            if len(provider.asked) > 1:
                raise DatabaseWriteFailed("the disk is full")
            return await put(row)

        monkeypatch.setattr(engine.store, "put_secret", full)
        with pytest.raises(BlockError, match="could not be written"):
            await connections.get("crm")
        monkeypatch.setattr(engine.store, "put_secret", put)
        credential: Credential = await connections.get("crm")
        assert value_of(credential) in provider.access and len(provider.asked) == 2


async def test_a_renewal_does_not_write_over_a_connection_that_was_set_again(tmp_path: Path) -> None:
    async with oauth_provider() as provider, opened_engine(tmp_path, provider.place) as engine:
        await connected(engine, provider)
        await expire(engine)
        provider.gate.clear()
        attempt = asyncio.create_task(engine.parts.connections.get("crm"))
        while len(provider.asked) < 2:
            await asyncio.sleep(0.01)
        await engine.connections.put("crm", Connection("bearer", TOKEN), [f"http://{provider.place}"])
        provider.gate.set()
        assert value_of(await attempt) == TOKEN


async def test_with_secrets_of_the_block_the_provider_is_still_reached(tmp_path: Path) -> None:
    """The block's secret is bound to the service; the provider is another host."""
    async with (
        oauth_provider() as provider,
        http(lambda _: answer(200)) as service,
        opened_engine(tmp_path, provider.place, service.place) as engine,
    ):
        await engine.secrets.set("EXTRA", "value of a secret", [f"http://{service.place}"])
        await engine.connections.put("crm", oauth(provider, "oauth2_client"), [f"http://{service.place}"])
        run = await ask(engine, service.url, headers={"X-Extra": "${EXTRA}"})
        assert run.status == "succeeded", run.error
        assert service.seen[0].headers["x-extra"] == "value of a secret"
