"""A test of a connection, with whole engines: servers on this machine play the services."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
import pytest

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.stored import connectors
from executor.blocks.vault.connection import Connection
from executor.blocks.vault.oauth import known_providers
from executor.errors import BadRequest, NotFound
from executor.open.engine import Engine
from executor.service.topics import connection_tests
from executor.service.topics.connection_tests import ConnectionTest
from tests.support.documents import connector
from tests.support.endpoints import Request, Server, answer, http
from tests.support.oauth_provider import oauth_provider
from tests.unit.executor.service.topics.test_connections import oauth, opened_engine, sign_in

TOKEN = "t0ken-of-the+service"
# How each service answers a test: what is asked, the answer to a good credential, who it is; an answer to a bad one.
RECORDED = Path(__file__).parents[2] / "blocks/connectors/recorded"
PLAYED = {
    path.stem: its
    for path in sorted(RECORDED.glob("*.json"))
    if (its := orjson.loads(path.read_bytes()).get("sign_in"))
}
SHIPPED = {block.connector.service: block.connector for block in connectors() if isinstance(block, ConnectorBlock)}


def told(status: int, body: Any) -> bytes:
    return answer(status, orjson.dumps(body), content_type="application/json")


def kind_of(service: str, secret: str = TOKEN) -> Connection:
    auth = SHIPPED[service].auth
    match auth.kind:
        case "bearer":
            return Connection("bearer", secret)
        case "basic":
            return Connection("basic", secret, "ada")
        case "query":
            return Connection("api_key", secret, where="query", name=auth.name)
        case _:
            return Connection("api_key", secret, name=auth.name, prefix=auth.prefix)


def asks_for(secret: str, good: bytes, bad: bytes) -> Callable[[Request], bytes]:
    def play(request: Request) -> bytes:
        given = " ".join((unquote(request.target), *request.headers.values()))
        basic = b64encode(f"ada:{secret}".encode()).decode()
        return good if secret in given or basic in given else bad

    return play


async def try_out(engine: Engine, server: Server, name: str = "crm", **more: Any) -> ConnectionTest:
    return await engine.connections.test(name, base_url=server.url, **more)


def test_every_service_that_takes_a_connection_has_a_check() -> None:
    takes = {name for name, one in SHIPPED.items() if one.auth.kind not in ("none", "path", "aws")}
    assert takes == set(PLAYED) == {name for name, one in SHIPPED.items() if one.sign_in is not None}
    providers = {one.id: one for one in known_providers()}
    for one in SHIPPED.values():
        if one.auth.provider:
            assert urlsplit(one.base_url).hostname and one.auth.provider in providers


@pytest.mark.parametrize("service", sorted(PLAYED))
async def test_who_one_is_at_each_service(tmp_path: Path, service: str) -> None:
    its = PLAYED[service]
    play = asks_for(TOKEN, told(its["status"], its["answer"]), told(*its["refused"]))
    async with http(play) as server, opened_engine(tmp_path, server.place) as engine:
        hosts = [f"http://{server.place}"]
        await engine.connections.put("crm", kind_of(service), hosts)
        found = await try_out(engine, server, service=service)
        assert (found.outcome, found.ok, found.status, found.who) == ("ok", True, its["status"], its["who"])
        [seen] = server.seen
        path = seen.target.partition("?")[0]
        assert f"{seen.method} {path}" == its["asked"]
        assert found.called == f"{seen.method} {server.url}{path}"
        for name, value in SHIPPED[service].headers.items():
            assert seen.headers[name.lower()] == value
        other = (kind_of(service, "another token"), hosts)
        refused = await try_out(engine, server, service=service, new=other)
        assert (refused.outcome, refused.ok, refused.who) == ("refused", False, "")
        assert refused.message and TOKEN not in repr([found, refused]) and "another token" not in repr(refused)
        assert [one.name for one in await engine.connections.all()] == ["crm"]  # what is tried out is not stored


async def test_the_last_test_is_kept_until_the_connection_changes(tmp_path: Path) -> None:
    play = asks_for(TOKEN, told(200, {}), told(401, {}))
    async with http(play) as server, opened_engine(tmp_path, server.place) as engine:
        hosts = [f"http://{server.place}"]
        own = Connection("bearer", TOKEN, check_url=f"{server.url}/me")
        await engine.connections.put("crm", own, hosts)
        (before,) = await engine.connections.all()
        found = await engine.connections.test("crm")
        refused = await engine.connections.test(
            "crm", new=(Connection("bearer", "another token", check_url=own.check_url), hosts)
        )
        (after,) = await engine.connections.all()
        await engine.connections.put("crm", own, hosts)
        (replaced,) = await engine.connections.all()
    assert (found.ok, refused.ok) == (True, False)
    assert before.tested is None and replaced.tested is None
    assert after.tested is not None and after.tested.result == found, "a test of what is not stored is not kept"


async def test_what_is_called_follows_the_hosts(tmp_path: Path) -> None:
    async with opened_engine(tmp_path) as engine:
        for name, hosts in (
            ("slack", ["slack.com"]), ("google", ["*.googleapis.com"]), ("mine", ["api.example.com"]),
        ):  # fmt: skip
            await engine.connections.put(name, Connection("bearer", TOKEN), hosts)
        own = Connection("bearer", TOKEN, check_url="https://api.example.com/me")
        await engine.connections.put("own", own, ["api.example.com"])
        calls = {one.name: one.check for one in await engine.connections.all()}
        none = await engine.connections.test("mine")
        elsewhere = await engine.connections.test("mine", "slack")
        with pytest.raises(NotFound):
            await engine.connections.test("crm")
    assert calls == {
        "google": "GET https://openidconnect.googleapis.com/v1/userinfo",
        "mine": "",
        "own": "GET https://api.example.com/me",
        "slack": "POST https://slack.com/api/auth.test",
    }
    assert (none.outcome, none.ok, none.called) == ("nothing", False, "") and "nothing to call" in none.message
    assert (elsewhere.outcome, elsewhere.status) == ("hosts", None) and "slack.com" in elsewhere.message


async def test_an_added_connector_declares_its_check(tmp_path: Path) -> None:
    play = asks_for(TOKEN, told(200, {"me": {"name": "ada"}}), told(403, {"title": "No"}))
    async with http(play) as server, opened_engine(tmp_path, server.place) as engine:
        document = connector("tea", server.url) | {"sign_in": {"path": "/me", "who": ["/me/name", "/me/more"]}}
        await engine.connectors.put("tea", document)
        await engine.connections.put("crm", Connection("bearer", TOKEN), [f"http://{server.place}"])
        found = await engine.connections.test("crm")
        await engine.connections.put("crm", Connection("bearer", "another token"), [f"http://{server.place}"])
        refused = await engine.connections.test("crm")
    assert (found.outcome, found.who, found.called) == ("ok", "ada", f"GET {server.url}/me")
    assert (refused.outcome, refused.status) == ("refused", 403) and "No" in refused.message


@pytest.mark.parametrize(
    ("connection", "place"),
    [
        (Connection("basic", TOKEN, "ada"), "authorization"),
        (Connection("api_key", TOKEN, name="X-Key"), "x-key"),
        (Connection("api_key", TOKEN, where="query", name="key"), ""),
    ],
)
async def test_a_typed_address_for_each_kind(tmp_path: Path, connection: Connection, place: str) -> None:
    def play(request: Request) -> bytes:
        given = request.headers.get(place) if place else request.target.partition("?key=")[2]
        return told(200, {"you": given}) if given else told(401, {"detail": "Who?"})

    async with http(play) as server, opened_engine(tmp_path, server.place) as engine:
        typed = f"{server.url}/me"
        made = Connection(
            connection.kind, TOKEN, connection.username, connection.where, connection.name, check_url=typed
        )
        await engine.connections.put("crm", made, [f"http://{server.place}"])
        found = await engine.connections.test("crm")
    assert (found.outcome, found.status, found.called) == ("ok", 200, f"GET {typed}")
    assert len(server.seen) == 2  # also without the credential, which has to be refused


async def test_an_address_that_asks_for_nothing_proves_nothing(tmp_path: Path) -> None:
    async with http(lambda _: told(200, {})) as server, opened_engine(tmp_path, server.place) as engine:
        made = Connection("bearer", TOKEN, check_url=f"{server.url}/")
        await engine.connections.put("crm", made, [f"http://{server.place}"])
        found = await engine.connections.test("crm")
    assert (found.outcome, found.ok) == ("failed", False) and "without the credential too" in found.message


@pytest.mark.parametrize(
    ("answered", "outcome", "said"),
    [
        (told(500, {"message": "Oops"}), "failed", "answered 500"),
        (told(404, {}), "failed", "answered 404"),
        (answer(302, location="http://127.0.0.1:9/login"), "failed", "answered 302"),
        (told(429, {}), "failed", "answered 429"),
        (told(401, {"message": f"{TOKEN} is not known"}), "refused", "is not known"),
        (b"nonsense\r\n\r\n", "unreachable", ""),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else "answer",
)
async def test_other_answers(tmp_path: Path, answered: bytes, outcome: str, said: str) -> None:
    async with http(lambda _: answered) as server, opened_engine(tmp_path, server.place) as engine:
        made = Connection("bearer", TOKEN, check_url=f"{server.url}/me")
        await engine.connections.put("crm", made, [f"http://{server.place}"])
        found = await engine.connections.test("crm")
    assert (found.outcome, found.ok) == (outcome, False) and said in found.message
    assert TOKEN not in repr(found)


async def test_services_that_do_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = asyncio.Event()

    async def late(_: Request) -> bytes:
        await waiting.wait()
        return answer(200)

    monkeypatch.setattr(connection_tests, "CHECK_S", 0.5)
    async with http(late) as server, opened_engine(tmp_path, server.place, "127.0.0.1:9") as engine:
        hosts = [f"http://{server.place}", "http://127.0.0.1:9", "http://127.0.0.1:10", "https://gone.test"]
        outcomes = {}
        for url in (server.url, "http://127.0.0.1:9/me", "http://127.0.0.1:10/me", "https://gone.test/me"):
            new = Connection("bearer", TOKEN, check_url=url), hosts
            outcomes[url.rpartition("/me")[0] or "late"] = (await engine.connections.test("crm", new=new)).outcome
        waiting.set()
    # The third address is on the list of hosts, and the server does not permit private addresses.
    assert outcomes == {
        "late": "timeout", "http://127.0.0.1:9": "unreachable", "http://127.0.0.1:10": "unreachable",
        "https://gone.test": "unreachable",
    }  # fmt: skip


async def test_a_token_is_renewed_for_a_test(tmp_path: Path) -> None:
    tokens: list[str] = []

    def play(request: Request) -> bytes:
        tokens.append(request.headers["authorization"])
        return told(401, {}) if len(set(tokens)) == 1 else told(200, {"login": "octocat"})

    async with (
        oauth_provider() as provider,
        http(play) as server,
        opened_engine(tmp_path, provider.place, server.place) as engine,
    ):
        places = [f"http://{provider.place}", f"http://{server.place}"]
        await engine.connections.put("crm", oauth(provider), places)
        needs_one = await try_out(engine, server, service="github")
        await sign_in(engine, provider)
        found = await try_out(engine, server, service="github")
        with pytest.raises(BadRequest, match="store it first"):
            await engine.connections.test("crm", "github", new=(oauth(provider), places))
    assert (needs_one.outcome, found.outcome, found.who) == ("not_ready", "ok", "octocat")
    assert len(set(tokens)) == 2 and not any(token.removeprefix("Bearer ") in repr(found) for token in tokens)
