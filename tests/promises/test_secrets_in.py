"""Where in a request a secret may stand: elsewhere, nothing is sent. A receiving socket is the witness."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest

import weft
from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.document import trusted
from executor.blocks.http.parts import checked_places, parts_of, place_of
from executor.blocks.services import MailSettings
from executor.blocks.vault.command import SecretsCommand
from executor.blocks.vault.connection import Connection
from executor.errors import BadRequest
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.service.upkeep.backup import backup
from server.app import build_engine
from server.reach import SettingsError
from server.settings import load_settings
from tests.support.command import weft as command
from tests.support.dev_model import dev_model
from tests.support.documents import chain
from tests.support.endpoints import Request, Server, answer, http, smtp
from tests.support.mcp_server import mcp_shop
from tests.support.runs import engine_on
from tests.support.server import SyncServerProcess
from tests.support.until import until

VALUE = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYzEXAMPLEKEY"
TOKEN = "t0ken-of-the-tests-" * 3
AUTHORIZATION: dict[str, Any] = {"headers": {"Authorization": "Bearer ${API_KEY}"}}
ONCE = {"policy": {"retry": {"max_attempts": 1}}}
# Params of an http block, and where the secret stands with them.
STANDS: list[tuple[dict[str, Any], str]] = [
    (AUTHORIZATION, "header:Authorization"),
    ({"headers": {"authorization": "${API_KEY}"}}, "header:Authorization"),
    ({"headers": {"X-Other": "${API_KEY}"}}, "header:X-Other"),
    ({"headers": {"Cookie": "a=1; key=${API_KEY}"}}, "header:Cookie"),
    ({"query": {"key": "${API_KEY}"}}, "query:key"),
    ({"query": {"other": ["1", "${API_KEY}"]}}, "query:other"),
    ({"url": "/a/${API_KEY}/b"}, "path"),
    ({"url": "/?k%65y=${API_KEY}"}, "query:key"),
    ({"url": "/?${API_KEY}"}, "query"),
    ({"body": {"deep": [{"key": "is ${API_KEY}"}]}}, "body"),
    ({"body": "key=${API_KEY}", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}, "body"),
]
PLACES = ["header:Authorization", "header:X-Other", "header:Cookie", "query:key", "query:other", "path", "body"]


@asynccontextmanager
async def opened(path: Path, *places: str, **more: Any) -> AsyncIterator[Engine]:
    async with open_engine(path / "weft.db", secret=b"k" * 32, allow_private=list(places), **more) as engine:
        yield engine


def ok(_: Request) -> bytes:
    return answer(200, b"{}", content_type="application/json")


def calling(server: Server, url: str = "/", **params: Any) -> dict[str, Any]:
    return {"type": "http", "params": {"method": "POST", "url": f"{server.url}{url}", **params}, **ONCE}


async def ran(engine: Engine, block: dict[str, Any]) -> Any:
    return await engine.run(chain("a", a={**block, **ONCE}), {}, timeout_s=60)


def refused_in(run: Any, place: str, name: str = "API_KEY") -> None:
    assert run.status == "failed", run.output
    assert run.error["code"] == "secret_misplaced", run.error
    said = f"the secret {name} stands in {place}, and may stand only in "
    assert said.lower() in run.error["message"].lower(), run.error
    assert VALUE not in str(run)


@pytest.mark.parametrize("permitted", PLACES)
async def test_a_request_is_sent_only_with_the_secret_in_its_place(tmp_path: Path, permitted: str) -> None:
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("API_KEY", VALUE, [server.url], [permitted])
        for params, stands in STANDS:
            before = len(server.seen)
            run = await ran(engine, calling(server, **params))
            sent = stands.lower() == permitted.lower()
            assert (run.status == "succeeded", len(server.seen) - before) == (sent, int(sent)), (params, run.error)
            if not sent:
                refused_in(run, stands)
                assert permitted in run.error["message"]
            else:
                request = server.seen[-1]
                assert VALUE in str((request.target, request.headers, request.body))


async def test_without_places_it_may_stand_anywhere(tmp_path: Path) -> None:
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        stored = await engine.secrets.set("API_KEY", VALUE, [server.url])
        assert stored.places == ()
        for params, _ in STANDS:
            run = await ran(engine, calling(server, **params))
            assert run.status == "succeeded", run.error
    assert len(server.seen) == len(STANDS)


async def test_several_places_and_several_secrets(tmp_path: Path) -> None:
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("API_KEY", VALUE, [server.url], ["header:Authorization", "body"])
        await engine.secrets.set("OTHER", VALUE[::-1], [server.url], ["query:k"])
        both = {"body": ["${API_KEY}"], "query": {"k": "${OTHER}"}, **AUTHORIZATION}
        assert (await ran(engine, calling(server, **both))).status == "succeeded"
        refused_in(await ran(engine, calling(server, **both, url="/${OTHER}")), "path", "OTHER")
        run = await ran(engine, calling(server, **(both | {"query": {"k": "${API_KEY}"}})))
        refused_in(run, "query:k")
        expected = f"weft secret set API_KEY --hosts {server.url}"
        assert f"{expected} --in header:Authorization --in body --in query:k" in run.error["hint"]
    assert len(server.seen) == 1


async def test_basic_and_a_signature_stand_in_authorization(tmp_path: Path) -> None:
    """Texts that are computed of the secret are in the place of the secret."""

    def connector(service: str, kind: str) -> ConnectorBlock:
        auth = {"kind": kind, "name": "X-Key"} if kind in ("header", "query") else {"kind": kind}
        auth |= {"service": "s3", "region": "eu"} if kind == "aws" else {}
        document = {
            "format": "weft-connector/1", "service": service, "title": service, "base_url": server.url, "auth": auth,
            "operations": {"get": {"title": "Get", "path": "/x", "fields": {}}},
        }  # fmt: skip
        return ConnectorBlock(trusted(document))

    kinds = {"one": "bearer", "two": "basic", "three": "header", "four": "query", "five": "aws"}
    async with http(ok) as server:
        blocks = [connector(*each) for each in kinds.items()]
        async with opened(tmp_path, server.place, blocks=blocks) as engine:
            for service, kind in kinds.items():
                stands = {"header": "header:X-Key", "query": "query:X-Key"}.get(kind, "header:Authorization")
                for place, sent in (("body", False), (stands, True)):
                    await engine.secrets.set("API_KEY", f"u:{VALUE}", [server.url], [place])
                    before = len(server.seen)
                    params = {"operation": "get", "credential": "${API_KEY}"}
                    run = await ran(engine, {"type": f"connector.{service}", "params": params})
                    assert len(server.seen) - before == sent, (service, place, run.error)
                    if not sent:
                        refused_in(run, stands)
    assert server.seen[1].headers["authorization"] == "Basic " + b64encode(f"u:{VALUE}".encode()).decode()


async def test_every_block_that_sends_http(tmp_path: Path) -> None:
    """In a header that is not permitted, and in the URL and body of messages."""
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("API_KEY", VALUE, [server.url], ["header:Authorization"])
        fields = {"type": "object", "properties": {}}
        for type, params in (
            ("job", {"url": server.url, "headers": {"X-Key": "${API_KEY}"}, "job": {}}),
            ("job", {"url": server.url, "job": {"k": "${API_KEY}"}}),
            ("callback", {"send": {"url": server.url, "body": {"k": "${API_KEY}"}}}),
            ("callback", {"send": {"url": server.url, "headers": {"X-Key": "${API_KEY}"}}}),
            ("callback", {"send": {"url": f"{server.url}/${{API_KEY}}"}}),
            ("approval", {"title": "t", "notify": {"webhook": f"{server.url}/${{API_KEY}}"}}),
            ("form", {"title": "t", "fields": fields, "notify": {"webhook": f"{server.url}/?k=${{API_KEY}}"}}),
        ):
            run = (await engine.submit(chain("a", a={"type": type, "params": params}))).run

            async def failed(run: str = run) -> str:
                rows = [each for wait in await engine.store.list_waits(run_id=run)
                        for each in await engine.store.list_notifications([(run, wait.id)])]  # fmt: skip
                return next((row.error or "" for row in rows if row.status == "failed"), "")

            error = await until(failed)
            assert "the secret API_KEY stands in" in error and VALUE not in error, error
        assert server.seen == []
        good = {"send": {"url": server.url, "headers": {"Authorization": "Bearer ${API_KEY}"}}}
        await engine.submit(chain("a", a={"type": "callback", "params": good}))
        await until(lambda: server.seen)
        assert server.seen[0].headers["authorization"] == f"Bearer {VALUE}"


async def test_tools_and_the_model_of_an_agent(tmp_path: Path) -> None:
    def tool(name: str, header: str) -> dict[str, Any]:
        params = {"url": tools.url, "headers": {header: "Bearer ${API_KEY}"}}
        return {"name": name, "block": "http", "params": params, "arguments": {"properties": {}}}

    called: list[dict[str, Any]] = [{"name": name, "arguments": {}} for name in ("right", "wrong")]
    async with (
        dev_model({"when": {"tool": ""}, "calls": called}, {"text": "done"}) as model,
        http(ok) as tools,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}, allow_private=[tools.place]) as engine,
    ):
        await engine.secrets.set("API_KEY", VALUE, [tools.url], ["header:Authorization"])
        place = f"http://{model.place}"
        params: dict[str, Any] = {"model": "dev:m", "api_key": "${MODEL_KEY}", "prompt": "x"}
        params["tools"] = [tool("right", "Authorization"), tool("wrong", "X-Key")]
        await engine.secrets.set("MODEL_KEY", VALUE[::-1], [place], ["header:x-api-key"])
        refused_in(await ran(engine, {"type": "agent", "params": params}), "header:authorization", "MODEL_KEY")
        assert await model.calls() == [] and tools.seen == []
        await engine.secrets.set("MODEL_KEY", VALUE[::-1], [place], ["header:Authorization"])
        run = await ran(engine, {"type": "agent", "params": params})
        assert run.status == "succeeded", run.error
        errors = [each["error"] for each in run.output["tool_calls"]]
        assert errors[0] is None and "the secret API_KEY stands in header:X-Key" in errors[1]
        assert [request.headers["authorization"] for request in tools.seen] == [f"Bearer {VALUE}"]


async def test_a_server_of_tools(tmp_path: Path) -> None:
    async with mcp_shop() as shop, opened(tmp_path, shop.place) as engine:
        await engine.secrets.set("API_KEY", VALUE, [f"http://{shop.place}"], ["header:Authorization"])
        for mcp in (
            {"url": shop.url, "headers": {"X-Key": "${API_KEY}"}},
            {"url": f"{shop.url}?k=${{API_KEY}}"},
        ):
            with pytest.raises(BadRequest, match="the secret API_KEY stands in") as caught:
                await engine.tool_servers.tools(mcp)
            assert caught.value.code == "secret_misplaced" and not shop.headers
        await engine.tool_servers.tools({"url": shop.url, "headers": {"Authorization": "Bearer ${API_KEY}"}})
        assert {each["authorization"] for each in shop.headers} == {f"Bearer {VALUE}"}


async def test_the_address_of_a_database_is_no_place_in_a_request(tmp_path: Path) -> None:
    async with opened(tmp_path, "127.0.0.1:9") as engine:
        dsn = "postgresql://rprtr:hunter2-qq7@127.0.0.1:9/d"
        await engine.secrets.set("API_KEY", dsn, ["127.0.0.1:9"], ["header:Authorization"])
        run = await ran(engine, {"type": "sql", "params": {"database": "${API_KEY}", "query": "SELECT 1"}})
        refused_in(run, "the address of a database")


async def test_the_text_of_a_mail_is_a_body(tmp_path: Path) -> None:
    async with smtp() as mail:
        settings = MailSettings(transport="smtp", host="127.0.0.1", port=mail.port, start_tls=False)
        async with opened(tmp_path, mail=settings) as engine:
            params = {"to": "a@b.example", "subject": "s", "body": "is ${API_KEY}"}
            await engine.secrets.set("API_KEY", VALUE, [f"127.0.0.1:{mail.port}"], ["header:Authorization"])
            refused_in(await ran(engine, {"type": "email", "params": params}), "body")
            assert mail.mails == []
            await engine.secrets.set("API_KEY", VALUE, [f"127.0.0.1:{mail.port}"], ["body"])
            assert (await ran(engine, {"type": "email", "params": params})).status == "succeeded"
            assert len(mail.mails) == 1


async def test_a_redirect_cannot_move_it(tmp_path: Path) -> None:
    """The permitted server knows the value, and leads to an address of its own with the value in it."""

    def away(request: Request) -> bytes:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        return answer(302, location=f"/next?k={key}") if request.target == "/" else answer(200, b"1")

    async with http(away) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("API_KEY", VALUE, [server.url], ["header:Authorization"])
        run = await ran(engine, calling(server, method="GET", **AUTHORIZATION))
        refused_in(run, "query")
        assert [request.target for request in server.seen] == ["/"]


async def test_a_block_of_another_package_that_uses_the_client(tmp_path: Path) -> None:
    """It has the value itself, also in base64."""

    @weft.block(type="fetch_price", effect="read", attempts=1)
    async def fetch_price(
        ctx: weft.StepContext, url: str, key: Annotated[str, weft.Param(secret=True)], header: str, coded: bool
    ) -> int:
        sent = b64encode(key.encode()).decode() if coded else key
        return (await ctx.http.get(url, headers={header: sent})).status

    async with http(ok) as server, opened(tmp_path, server.place, blocks=[fetch_price]) as engine:
        await engine.secrets.set("API_KEY", VALUE, [server.url], ["header:Authorization"])
        for coded in (False, True):
            for header, sent in (("X-Key", False), ("Authorization", True)):
                before = len(server.seen)
                params = {"url": server.url, "key": "${API_KEY}", "header": header, "coded": coded}
                run = await ran(engine, {"type": "fetch_price", "params": params})
                assert len(server.seen) - before == sent, run.error
                if not sent:
                    refused_in(run, "header:X-Key")


async def test_a_connection_has_the_same_rule(tmp_path: Path) -> None:
    """It is put into its own place; one that stood elsewhere would not be sent."""
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        await engine.connections.put("crm", Connection("api_key", VALUE, name="X-Key"), [server.url])
        assert (await ran(engine, calling(server, connection="crm"))).status == "succeeded"
        credential = await engine.parts.connections.get("crm")
        with credential.bound():
            with pytest.raises(weft.BlockError, match="the connection crm stands in body") as caught:
                await engine.parts.services.http.request("POST", server.url, content=credential.value.encode())
            assert caught.value.code == "secret_misplaced"
    assert [request.headers["x-key"] for request in server.seen] == [VALUE]


async def test_the_command_of_the_operator_says_places(tmp_path: Path) -> None:
    async with http(ok) as server, opened(tmp_path, server.place) as engine:
        program = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    places = ["header:Authorization"] if "API_KEY" in asked["names"] else ["Authorization"]
    found = {{"value": {VALUE!r}, "hosts": [{server.url!r}], "places": places}}
    print(json.dumps({{"id": asked["id"], "secrets": dict.fromkeys(asked["names"], found)}}), flush=True)
"""
        engine.parts.vault._command = engine.parts.services.secrets_command = SecretsCommand(
            [sys.executable, "-c", program]
        )
        refused_in(await ran(engine, calling(server, query={"k": "${API_KEY}"})), "query:k")
        run = await ran(engine, calling(server, query={"k": "${WRONG}"}))
        assert run.error["code"] == "secret_invalid" and "invalid place" in run.error["message"]
        assert server.seen == []
        assert (await ran(engine, calling(server, **AUTHORIZATION))).status == "succeeded"


async def test_places_of_a_secret_of_the_environment(tmp_path: Path) -> None:
    own = {"WEFT_DB": str(tmp_path / "weft.db"), "WEFT_SECRET_KEY": "a secret for tests only", "WEFT_TOKEN": "off"}
    async with http(ok) as server:
        names = {
            "WEFT_ALLOW_PRIVATE": server.place, "WEFT_SECRET_API_KEY": VALUE, "WEFT_SECRET_HOSTS_API_KEY": server.url,
            "WEFT_SECRET_IN_API_KEY": "header:Authorization, query:key",
        }  # fmt: skip
        engine = await build_engine(load_settings({**own, **names}))
        try:
            run = await ran(engine, calling(server, body={"k": "${API_KEY}"}))
            refused_in(run, "body")
            expected = "start the server with WEFT_SECRET_IN_API_KEY=header:Authorization,query:key,body"
            assert expected in run.error["hint"] and server.seen == []
            assert (await ran(engine, calling(server, **AUTHORIZATION))).status == "succeeded"
            assert (await ran(engine, calling(server, query={"key": "${API_KEY}"}))).status == "succeeded"
        finally:
            await engine.close()
    for wrong, said in (
        ({"WEFT_SECRET_IN_API_KEY": "body"}, "WEFT_SECRET_API_KEY is not"),
        ({"WEFT_SECRET_API_KEY": VALUE, "WEFT_SECRET_IN_API_KEY": "Authorization"}, "is not a place in a request"),
        ({"WEFT_SECRET_OPENAI_API_KEY": VALUE, "WEFT_SECRET_IN_OPENAI_API_KEY": "body"}, "needs no places"),
    ):
        with pytest.raises(SettingsError, match=said):
            load_settings({**own, **wrong})


def test_the_command_sets_them_on_a_real_server(tmp_path: Path) -> None:
    """From `weft secret set --in` to the socket that receives the request, or does not."""

    async def within() -> None:
        async with http(ok) as service:
            environ = {"WEFT_ALLOW_PRIVATE": service.place, "WEFT_TOKEN": TOKEN}
            server = await asyncio.to_thread(SyncServerProcess, tmp_path, environ)
            try:
                await asyncio.to_thread(_set_and_list, server.url, service.url)
                own = {"Authorization": f"Bearer {TOKEN}"}
                async with httpx.AsyncClient(base_url=server.url, timeout=100, headers=own) as client:
                    cases: list[tuple[dict[str, Any], bool]] = [
                        (AUTHORIZATION, True),
                        ({"query": {"k": "${API_KEY}"}}, False),
                    ]
                    for params, sent in cases:
                        before = len(service.seen)
                        document = chain("a", a=calling(service, **params))
                        run = (await client.post("/api/runs?wait=60", json={"document": document})).json()
                        assert (run["status"] == "succeeded", len(service.seen) - before) == (sent, sent), run
                    view = (await client.get(f"/api/runs/{run['run']}")).json()
                    assert view["error"]["code"] == "secret_misplaced", view["error"]
                    assert "the secret API_KEY stands in query:k" in view["error"]["message"]
                    audit = (await client.get("/api/audit")).text
                    assert f"for {service.url}, in header:Authorization, body" in audit and VALUE not in audit
            finally:
                await asyncio.to_thread(server.kill)
            assert service.seen[0].headers["authorization"] == f"Bearer {VALUE}"

    asyncio.run(within())


def _set_and_list(url: str, host: str) -> None:
    given = ("secret", "set", "API_KEY", "--hosts", host)
    environ = {"WEFT_URL": url, "WEFT_TOKEN": TOKEN}
    made = command(*given, "--in", "header:Authorization", "--in", "body", input=VALUE, environ=environ)
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == f"API_KEY version 1, for {host}, in header:Authorization, body"
    listed = command("secret", "list", environ=environ)
    assert listed.stdout.strip() == f"API_KEY  version 1  {host}, in header:Authorization, body"
    wrong = command(*given, "--in", "cookie:x", input=VALUE, environ=environ)
    assert wrong.returncode != 0 and "'cookie:x' is not a place in a request" in wrong.stderr
    assert "such as header:Authorization" in wrong.stderr
    assert "version 1" in command("secret", "list", environ=environ).stdout


async def test_another_key_and_a_backup_keep_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.secrets.set("API_KEY", VALUE, ["a.example"], ["header:Authorization", "query:key"])
        await engine.secrets.set("FREE", VALUE[::-1], ["a.example"])
    copy = tmp_path / "copy"
    copy.mkdir()
    backup(tmp_path / "weft.db", copy / "weft.db")
    for folder in (tmp_path, copy):
        async with opened(folder) as engine:
            await engine.secrets.rekey(0)
            found = {each.name: each.places for each in await engine.secrets.all()}
            assert found == {"API_KEY": ("header:Authorization", "query:key"), "FREE": ()}


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "header",
        "header:",
        "header:a b",
        "header:ü",
        "query:",
        "query:a,b",
        "query:a=b",
        "cookie:x",
        "Body",
        "path:x",
    ],
)
def test_what_is_no_place(wrong: str) -> None:
    with pytest.raises(BadRequest) as caught:
        checked_places(["body", wrong])
    assert (caught.value.code, caught.value.pointer) == ("secret_places_invalid", "/places")


def test_places_are_kept_as_they_were_written_once() -> None:
    assert checked_places([" header:X-Key ", "header:x-key", "query:Key", "query:key"]) == (
        "header:x-key", "query:Key", "query:key",
    )  # fmt: skip
    with pytest.raises(BadRequest, match="at most 20"):
        checked_places([f"query:k{number}" for number in range(21)])


def test_a_value_that_ends_its_parameter_is_found() -> None:
    """A plain value with `&` in it, which is two parameters for those who look at one at a time."""
    parts = parts_of("http://a.example/?k=one&two&z=1", {}, None)
    assert place_of(parts, ["body"], lambda text: "one&two" in text) == "query"
    assert place_of(parts, ["query:k"], lambda text: "one" in text) is None


def test_a_name_with_the_value_in_it_is_not_shown() -> None:
    parts = parts_of("http://a.example/?canary=1", {"X-canary": "1"}, None)
    assert place_of(parts, ["body"], lambda text: "canary" in text) == "query"
    assert place_of(parts[2:], ["body"], lambda text: "canary" in text) == "a header"
