"""Connections in blocks that ask models, MCP servers, mail servers and databases: whole engines, real servers."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler.compile import compile_document
from executor.blocks.vault.connection import Connection, Provider
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.dev_model import dev_model
from tests.support.documents import chain
from tests.support.endpoints import MailServer, Request, answer, http, smtp
from tests.support.mcp_server import mcp_shop
from tests.support.oauth_provider import CLIENT_ID, CLIENT_SECRET, oauth_provider
from tests.support.oauth_provider import Provider as LocalProvider
from tests.support.postgres import socket_of
from tests.support.postgres_proxy import proxy_in_a_thread
from tests.support.runs import engine_on, outputs, ran

TOKEN = "t0ken-of-the+service"
ONCE = {"policy": {"retry": {"max_attempts": 1}}}
Json = dict[str, Any]


@asynccontextmanager
async def opened(path: Path, *places: str, **more: Any) -> AsyncIterator[Engine]:
    async with engine_on(path / "weft.db", allow_private=places, **more) as engine:
        yield engine


async def add(engine: Engine, connection: Connection, *hosts: str) -> None:
    await engine.connections.put("crm", connection, list(hosts), by="ada")


async def run(engine: Engine, type: str, **params: Any) -> RunView:
    return await ran(engine, chain("a", a={"type": type, "params": params} | ONCE))


def code_of(view: RunView) -> str | None:
    return None if view.error is None else str(view.error["code"])


def of_client(provider: LocalProvider) -> Connection:
    return Connection("oauth2_client", CLIENT_SECRET, provider=Provider(f"{provider.url}/token", CLIENT_ID))


async def seen_nowhere(engine: Engine, view: RunView, folder: Path, *secrets: str) -> None:
    records = repr([record.data for record in await engine.store.read_events(view.id)]) + repr(view)
    data = b"".join(path.read_bytes() for path in folder.glob("weft.db*"))
    for secret in secrets:
        for spelled in (secret, base64.b64encode(secret.encode()).decode()):
            assert spelled not in records and spelled.encode() not in data


# --- language models


@pytest.mark.parametrize("dialect", ["", "anthropic+"])
@pytest.mark.parametrize(
    ("connection", "name", "value"),
    [
        (Connection("bearer", TOKEN), "authorization", f"Bearer {TOKEN}"),
        (Connection("api_key", TOKEN, name="x-api-key"), "x-api-key", TOKEN),
        (Connection("basic", TOKEN, "ada"), "authorization", "Basic YWRhOnQwa2VuLW9mLXRoZStzZXJ2aWNl"),
    ],
)
async def test_a_model_gets_the_credential(
    tmp_path: Path, dialect: str, connection: Connection, name: str, value: str
) -> None:
    def handle(request: Request) -> bytes:
        body = json.dumps({"error": {"message": f"no: {request.headers.get(name)}"}}).encode()
        return answer(400, body, content_type="application/json")

    async with http(handle) as server:
        url = f"{dialect}{server.url}"
        env = {"GATE_API_KEY": "another-key-4711"}  # of the endpoint: a connection takes its place
        async with opened(tmp_path, models={"GATE": url}, env=env) as engine:
            await add(engine, connection, f"http://{server.place}")
            view = await run(engine, "agent", model="gate:m", prompt="hello", connection="crm")
            assert code_of(view) == "model_refused"
            [seen] = server.seen
            assert seen.headers[name] == value
            assert "another-key-4711" not in repr(seen)
            await seen_nowhere(engine, view, tmp_path, TOKEN)


async def test_a_model_gets_a_key_in_the_address(tmp_path: Path) -> None:
    async with (
        http(lambda r: answer(400, b"{}")) as server,
        opened(tmp_path, models={"GATE": server.url}) as engine,
    ):
        await add(engine, Connection("api_key", TOKEN, where="query", name="key"), f"http://{server.place}")
        view = await run(engine, "evaluator", **scored("crm", "gate:m"))
        assert code_of(view) == "model_refused"
        [seen] = server.seen
        assert seen.target == "/chat/completions?key=t0ken-of-the%2Bservice" and "authorization" not in seen.headers
        await seen_nowhere(engine, view, tmp_path, TOKEN)


def scored(connection: str | None, model: str) -> Json:
    metrics = [{"name": "m", "min": 0, "max": 1}]
    return {"model": model, "content": "x", "metrics": metrics, "connection": connection}


async def test_a_model_at_another_host_does_not_get_it(tmp_path: Path) -> None:
    async with dev_model({"text": "never"}) as model, opened(tmp_path, models={"DEV": model.url}) as engine:
        await add(engine, Connection("bearer", TOKEN), "models.example.com")
        view = await run(engine, "agent", model="dev:m", prompt="hello", connection="crm")
        assert code_of(view) == "secret_host_refused"
        assert "models.example.com" in str(view.error) and await model.calls() == []


async def test_a_tool_of_the_agent_does_not_need_the_hosts_of_its_model(tmp_path: Path) -> None:
    fetch = {"name": "fetch", "block": "http", "arguments": {"properties": {}}}
    rules: list[Json] = [
        {"when": {"tool": ""}, "calls": [{"name": "fetch", "arguments": {}}]}, {"text": "It is {{tool}}"}
    ]  # fmt: skip
    async with (
        dev_model(*rules) as model,
        http(lambda r: answer(200, b"sun", content_type="text/plain")) as service,
        opened(tmp_path, service.place, models={"DEV": model.url}) as engine,
    ):
        await add(engine, Connection("bearer", TOKEN), f"http://{model.place}")
        tools = [fetch | {"params": {"url": service.url}}]
        view = await run(engine, "agent", model="dev:m", prompt="hello", connection="crm", tools=tools)
        assert view.status == "succeeded", view.error
        [seen] = service.seen
        assert "authorization" not in seen.headers
        keys = [call["headers"]["authorization"] for call in await model.calls()]
        assert len(keys) == 2 and all(TOKEN.endswith(key.removeprefix("…")) for key in keys)


async def test_a_key_and_a_connection_are_one_too_many(tmp_path: Path) -> None:
    async with dev_model({"text": "never"}) as model, opened(tmp_path, models={"DEV": model.url}) as engine:
        await add(engine, Connection("bearer", TOKEN), f"http://{model.place}")
        view = await run(engine, "agent", model="dev:m", prompt="hello", connection="crm", api_key="k" * 20)
        assert code_of(view) == "params_invalid" and "not both" in str(view.error)


def gateway(provider: LocalProvider) -> Callable[[Request], bytes]:
    """A server of models that asks for tokens of the provider."""

    def handle(request: Request) -> bytes:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in provider.access:
            return answer(401, b'{"error": {"message": "the token has ended"}}', content_type="application/json")
        said = {"role": "assistant", "content": '{"m": {"reason": "good", "score": 1}}'}
        body = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        return answer(200, json.dumps(body).encode(), content_type="application/json")

    return handle


async def test_a_gateway_gets_a_new_token_when_it_refuses_one(tmp_path: Path) -> None:
    async with (
        oauth_provider() as provider,
        http(gateway(provider)) as gate,
        opened(tmp_path, provider.place, models={"GATE": gate.url}) as engine,
    ):
        await add(engine, of_client(provider), f"http://{gate.place}")
        first = await run(engine, "evaluator", **scored("crm", "gate:m"))
        assert first.status == "succeeded", first.error
        provider.access.clear()
        second = await run(engine, "evaluator", **scored("crm", "gate:m"))
        assert second.status == "succeeded", second.error
        assert [request.headers["authorization"][:7] for request in gate.seen] == ["Bearer "] * 3
        assert len(provider.asked) == 2
        await seen_nowhere(engine, second, tmp_path, *provider.access)


# --- MCP servers


async def test_an_mcp_server_gets_the_credential(tmp_path: Path) -> None:
    rules: list[Json] = [
        {"when": {"tool": ""}, "calls": [{"name": "shop_find", "arguments": {"id": 3}}]},
        {"text": "{{tool}}"},
    ]
    async with dev_model(*rules) as model, mcp_shop() as shop, oauth_provider() as provider:
        shop.admits = lambda header: header.removeprefix("Bearer ") in provider.access
        async with opened(tmp_path, shop.place, provider.place, models={"DEV": model.url}) as engine:
            await add(engine, of_client(provider), f"http://{shop.place}")
            tools = [{"name": "shop", "mcp": {"url": shop.url, "connection": "crm"}}]
            view = await run(engine, "agent", model="dev:m", prompt="hello", tools=tools)
            assert view.status == "succeeded", view.error
            assert shop.called == {("find", 3): 1}
            provider.access.clear()
            again = await run(engine, "agent", model="dev:m", prompt="hello", tools=tools)
            assert again.status == "succeeded", again.error
            assert shop.called == {("find", 3): 2} and len(provider.asked) == 2
            await seen_nowhere(engine, again, tmp_path, *provider.access)


async def test_an_mcp_server_at_another_host_does_not_get_it(tmp_path: Path) -> None:
    async with (
        dev_model({"text": "never"}) as model,
        mcp_shop() as shop,
        opened(tmp_path, shop.place, models={"DEV": model.url}) as engine,
    ):
        await add(engine, Connection("bearer", TOKEN), f"http://{model.place}")
        tools = [{"name": "shop", "mcp": {"url": shop.url, "connection": "crm"}}]
        view = await run(engine, "agent", model="dev:m", prompt="hello", tools=tools)
        assert code_of(view) == "secret_host_refused" and shop.headers == []


async def test_a_connection_cannot_take_a_header_of_the_session(tmp_path: Path) -> None:
    async with (
        dev_model({"text": "never"}) as model,
        mcp_shop() as shop,
        opened(tmp_path, shop.place, models={"DEV": model.url}) as engine,
    ):
        await add(engine, Connection("api_key", TOKEN, name="Mcp-Session-Id"), f"http://{shop.place}")
        tools = [{"name": "shop", "mcp": {"url": shop.url, "connection": "crm"}}]
        view = await run(engine, "agent", model="dev:m", prompt="hello", tools=tools)
        assert code_of(view) == "params_invalid" and shop.headers == []


# --- mail servers


def lines(*more: tuple[str, str]) -> dict[str, str]:
    return {"EHLO": "250-test\r\n250 AUTH PLAIN LOGIN XOAUTH2", **dict(more)}


async def mailed(engine: Engine, mails: MailServer, **more: Any) -> RunView:
    given = {"to": "bob@example.org", "subject": "Hi", "body": "x", "from": "Ada <ada@example.org>", **more}
    return await run(engine, "email", **given)


async def test_a_mail_server_of_a_block_gets_user_and_password(tmp_path: Path) -> None:
    async with smtp(lines()) as mails:
        place = f"127.0.0.1:{mails.port}"
        async with opened(tmp_path, place) as engine:
            await add(engine, Connection("basic", TOKEN, "ada"), place)
            view = await mailed(engine, mails, connection="crm", server=place)
            assert view.status == "succeeded", view.error
            assert outputs(view)["a"]["transport"] == "smtp"
            [mail] = mails.mails
            assert mail.recipients == ["bob@example.org"]
            plain = base64.b64encode(f"\0ada\0{TOKEN}".encode()).decode()
            assert f"AUTH PLAIN {plain}" in mails.lines
            await seen_nowhere(engine, view, tmp_path, TOKEN, f"\0ada\0{TOKEN}")


async def test_a_mail_server_gets_a_token_of_the_sender_and_a_new_one(tmp_path: Path) -> None:
    async with smtp(lines()) as mails, oauth_provider() as provider:
        place = f"127.0.0.1:{mails.port}"
        refuse = base64.b64encode(b'{"status":"401"}').decode()

        def check(line: str) -> str | None:
            if not line.startswith("AUTH XOAUTH2 "):
                return "535 5.7.8 refused" if line == "" else None
            user, bearer = base64.b64decode(line.split(" ")[2]).decode().split("\1")[:2]
            assert user == "user=ada@example.org"
            return "235 ok" if bearer.removeprefix("auth=Bearer ") in provider.access else f"334 {refuse}"

        mails.answers = check
        async with opened(tmp_path, place, provider.place) as engine:
            await add(engine, of_client(provider), place, provider.place)
            for count in (1, 2):
                view = await mailed(engine, mails, connection="crm", server=place)
                assert view.status == "succeeded", view.error
                assert len(mails.mails) == len(provider.asked) == count
                provider.access.clear()
            await seen_nowhere(engine, view, tmp_path, *provider.access)


async def test_a_mail_server_that_is_not_a_host_of_the_connection(tmp_path: Path) -> None:
    async with smtp(lines()) as mails:
        place = f"127.0.0.1:{mails.port}"
        async with opened(tmp_path, place) as engine:
            await add(engine, Connection("basic", TOKEN, "ada"), "smtp.example.com:587")
            view = await mailed(engine, mails, connection="crm", server=place)
            assert code_of(view) == "secret_host_refused" and mails.lines == []
            alone = await mailed(engine, mails, connection="crm")  # it would be written to the log
            assert code_of(alone) == "secret_host_refused" and "log" in str(alone.error)


async def test_a_mail_server_at_a_private_address_is_refused(tmp_path: Path) -> None:
    async with smtp(lines()) as mails, opened(tmp_path) as engine:
        place = f"127.0.0.1:{mails.port}"
        await add(engine, Connection("basic", TOKEN, "ada"), place)
        view = await mailed(engine, mails, connection="crm", server=place)
        assert code_of(view) == "address_refused" and mails.lines == []


async def test_which_connections_sign_in_to_a_mail_server(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await add(engine, Connection("bearer", TOKEN), "smtp.example.com")
        view = await run(
            engine, "email", to="bob@example.org", subject="Hi", connection="crm", server="smtp.example.com"
        )
        assert code_of(view) == "params_invalid" and "cannot sign in to a mail server" in str(view.error)
        given = {"type": "email", "params": {"to": "b@example.org", "subject": "x", "server": "smtp.example.com"}}
        [found] = compile_document(chain("a", a=given), engine.parts.registry).diagnostics
        assert found.message.endswith("A mail server of the block needs a connection.")


# --- PostgreSQL


async def test_a_database_gets_user_and_password(tmp_path: Path, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        name = admin.info.dbname
    with proxy_in_a_thread(socket_of(postgres), lambda: False) as proxy:
        place = f"127.0.0.1:{proxy.port}"
        user = psycopg.conninfo.conninfo_to_dict(postgres).get("user") or "postgres"
        async with opened(tmp_path, place) as engine:
            await add(engine, Connection("basic", TOKEN, str(user)), place)
            address = f"postgresql://{place}/{name}"
            view = await run(engine, "sql", database=address, query="SELECT current_user AS u", connection="crm")
            assert view.status == "succeeded", view.error
            assert f"'u': '{user}'" in repr(view)
            await add(engine, Connection("basic", TOKEN, "another-name"), place)
            other = await run(engine, "sql", database=address, query="SELECT 1", connection="crm")
            assert other.status == "failed"
            await add(engine, Connection("basic", TOKEN, str(user)), "db.example.com")
            refused = await run(engine, "sql", database=address, query="SELECT 1", connection="crm")
            assert code_of(refused) == "secret_host_refused"
            await seen_nowhere(engine, view, tmp_path, TOKEN)


@pytest.fixture
def role_with_a_password(postgres: str) -> Iterator[str]:
    """Of a server that otherwise trusts all who reach its socket. No other test has this role."""
    with psycopg.connect(postgres, autocommit=True) as admin:
        row = admin.execute("SHOW hba_file").fetchone()
        assert row is not None
        rules = Path(row[0])
        if not os.access(rules, os.W_OK):
            pytest.skip("the rules of this server cannot be changed from here")
        before = rules.read_text()
        admin.execute("CREATE ROLE reporter LOGIN PASSWORD 'the right one'")
        rules.write_text(f"local all reporter scram-sha-256\nhost all reporter all scram-sha-256\n{before}")
        admin.execute("SELECT pg_reload_conf()")
        try:
            while _signs_in(postgres, user="reporter", password="wrong"):  # the server has yet to read them
                time.sleep(0.01)
            yield "reporter"
        finally:
            rules.write_text(before)
            admin.execute("SELECT pg_reload_conf()")
            admin.execute("DROP ROLE reporter")


def _signs_in(address: str, user: str, password: str) -> bool:
    try:
        psycopg.connect(address, user=user, password=password).close()
    except psycopg.OperationalError:
        return False
    return True


async def test_a_wrong_password_of_a_database_is_tried_once(
    tmp_path: Path, postgres: str, role_with_a_password: str
) -> None:
    with psycopg.connect(postgres) as admin:
        name = admin.info.dbname
    with proxy_in_a_thread(socket_of(postgres), lambda: False) as proxy:
        place = f"127.0.0.1:{proxy.port}"
        address = f"postgresql://{place}/{name}"
        query = {"database": address, "query": "SELECT current_user AS u", "connection": "crm"}
        patient = {"policy": {"retry": {"max_attempts": 5, "initial_ms": 1}}}
        document = chain("a", a={"type": "sql", "params": query} | patient)
        async with opened(tmp_path, place) as engine:
            await add(engine, Connection("basic", "the right one", role_with_a_password), place)
            good = await ran(engine, document)
            assert good.status == "succeeded", good.error
            await add(engine, Connection("basic", TOKEN, role_with_a_password), place)
            began = proxy.sessions
            view = await ran(engine, document)
            assert view.error is not None and code_of(view) == "sql_login"
            assert "refused the user or the password" in view.error["message"]
            assert view.error["hint"] == "check the credential of the connection crm"
            assert [node.attempt for node in view.nodes if node.block == "a"] == [1], "it stays wrong"
            assert proxy.sessions - began <= 2, "one connection, and one more where the first tried TLS"
            await seen_nowhere(engine, view, tmp_path, TOKEN)


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("postgresql://u:pw@h/d", "Database must not contain a password."),
        ("postgresql://u@h/d?password=x", "Database must not contain a password."),
        ("a.db", "A connection signs in to PostgreSQL or MySQL."),
        ("<start.where>", "Database must be ${NAME} or the name of a SQLite file."),
        ("postgresql://h:5432/d?sslmode=verify-full", None),
    ],
)
async def test_addresses_beside_a_connection(tmp_path: Path, database: str, message: str | None) -> None:
    async with opened(tmp_path) as engine:
        given = {"type": "sql", "params": {"database": database, "query": "SELECT 1", "connection": "crm"}}
        found = compile_document(chain("a", a=given), engine.parts.registry).diagnostics
        assert [each.message for each in found if each.code == "param_invalid"] == (
            [f'SQL query "a": {message}'] if message else []
        )


@pytest.mark.parametrize("part", ["sslkey=/etc/ssl/key", "sslrootcert=/etc/passwd", "options=-c%20x%3D1", "service=a"])
async def test_an_address_of_a_document_reads_no_file(tmp_path: Path, part: str) -> None:
    async with opened(tmp_path) as engine:
        await add(engine, Connection("basic", TOKEN, "ada"), "127.0.0.1")
        database = f"postgresql://127.0.0.1:1/d?{part}"
        view = await run(engine, "sql", database=database, query="SELECT 1", connection="crm")
        assert code_of(view) == "params_invalid" and "as a connection signs in" in str(view.error)


async def test_a_sqlite_file_has_no_users(tmp_path: Path) -> None:
    async with opened(tmp_path, sqlite_folders=(str(tmp_path),), env={"FILE": "a.db"}) as engine:
        await add(engine, Connection("basic", TOKEN, "ada"), "127.0.0.1")
        view = await run(engine, "sql", database="${FILE}", query="SELECT 1", connection="crm")
        assert code_of(view) == "params_invalid" and "SQLite" in str(view.error)
