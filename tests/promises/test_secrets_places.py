"""Where secrets go: blocks hold handles of them, no message has a part of one, and a host means a scheme and a port."""

from __future__ import annotations

import pickle
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from executor.blocks.types.http import block as http_block
from executor.blocks.vault.connection import Connection
from executor.kernel.handler.base import Done, StepContext
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.documents import chain
from tests.support.endpoints import Request, answer, http
from tests.support.service import serve

SECRETS = {
    "AWS": "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab",
    "TELEGRAM": "123456789:AAEhBP0av28-mnopqrstuvwxyzABCDEFGHI",
    "BASIC": "zvc-uzer:qorrekt-horze-batrrey",
    "BASE64": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY",
    "PLAIN": "x9#kQ!2@pZ$7&mL-and-more",
    "DSN": "postgresql://rprtr-1:hunter2-qq7@dbz9.zntxrn.test:5433/ldgr",
}
ONCE = {"policy": {"retry": {"max_attempts": 1}}}


@asynccontextmanager
async def opened(path: Path, *places: str, **more: Any) -> AsyncIterator[Engine]:
    async with open_engine(path / "weft.db", secret=b"k" * 32, allow_private=list(places), **more) as engine:
        yield engine


def parts_in(secret: str, text: str) -> list[str]:
    """What of it a text has: every four characters of the secret, in any case."""
    text, secret = text.lower(), secret.lower()
    return [secret[at : at + 4] for at in range(len(secret) - 3) if secret[at : at + 4] in text]


def block(type: str, **params: Any) -> dict[str, Any]:
    return {"type": type, "params": params, **ONCE}


BAD_URLS = [
    "http://${X}/", "http://x:${X}/", "${X}", "${X}/path", "//${X}/", "${X}://a.example/", "http://u:${X}@a.example/",
    "http://a.example:${X}/", "http:\\\\${X}\\", "http://a.example${X}/", "http://[${X}]/",
]  # fmt: skip
BAD_PATHS = ["http://127.0.0.1:9/${X}\x01", "http://127.0.0.1:9/${X}", "http://127.0.0.1:9/?q=${X}", "http://:1/${X}"]


def places_of(url: str) -> dict[str, dict[str, Any]]:
    """Every block that takes a URL."""
    tool = {"name": "call", "block": "http", "params": {"url": url}}
    return {
        "http": block("http", url=url),
        "callback": block("callback", send={"url": url}),
        "job": block("job", url=url, job={}),
        "approval": block("approval", title="t", notify={"webhook": url}),
        "form": block("form", title="t", fields={"type": "object", "properties": {}}, notify={"webhook": url}),
        "agent": block("agent", model="dev:m", prompt="x", tools=[tool]),
    }


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_secret_in_scheme_host_or_port_is_an_error_of_the_document(tmp_path: Path, url: str) -> None:
    async with opened(tmp_path) as engine:
        await engine.secrets.set("X", SECRETS["BASIC"], ["a.example"])
        pointers = {"http": "/url", "callback": "/send/url", "job": "/url", "agent": "/tools/0/params/url"}
        for type, given in places_of(url).items():
            compiled = await engine.parts.compiler.compile(chain("a", a=given))
            found = [each for each in compiled.diagnostics if each.code == "secret_in_address"]
            where = pointers.get(type, "/notify/webhook")
            assert [(each.severity, each.pointer) for each in found] == [("error", f"/blocks/a/params{where}")], type


async def test_elsewhere_in_a_url_it_is_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.secrets.set("X", SECRETS["BASIC"], ["a.example"])
        for url in ("https://a.example/${X}", "https://a.example?x=${X}", "https://a.example/#${X}"):
            for type, given in places_of(url).items():
                compiled = await engine.parts.compiler.compile(chain("a", a=given))
                assert not [each for each in compiled.diagnostics if each.code.startswith("secret_")], (type, url)


@pytest.mark.parametrize("name", SECRETS)
async def test_no_message_has_a_part_of_a_secret(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the findings do not know it: the name becomes one after the document was compiled."""
    secret = SECRETS[name]
    blocks = [block("http", url=url.replace("X", name)) for url in (*BAD_URLS, *BAD_PATHS)]
    blocks += [
        block("http", url="http://127.0.0.1:9/", headers={"X-Key": f"${{{name}}}\n"}),
        block("http", url="http://127.0.0.1:9/", headers={"Cookie": f"a=${{{name}}}"}),
        block("sql", database=f"${{{name}}}", query="SELECT 1"),
        block("sql", database="${D}", query="SELECT 1"),
        block("sql", database="${M}", query="SELECT 1"),
        block("redis", server="${R}", command="PING"),
    ]
    hosts = ["127.0.0.1:9", "http://127.0.0.1:9", "dbz9.zntxrn.test:5433"]
    shown: list[str] = []
    async with opened(tmp_path) as engine:
        monkeypatch.setattr("compiler.compile.check_secrets", lambda *_: None)
        await engine.secrets.set(name, secret, hosts)
        await engine.secrets.set("D", f"postgresql://u:{quote(secret, safe='')}@127.0.0.1:9/d", hosts)
        await engine.secrets.set("M", f"mysql://{secret}", hosts)
        await engine.secrets.set("R", f"redis://{secret}", hosts)
        for given in blocks:
            run = await engine.run(chain("a", a=given), {}, timeout_s=60)
            assert run.status == "failed" and run.error is not None, given
            assert run.error["code"] != "internal_error", run.error
            records = [record.data or b"" for record in await engine.store.read_events(run.id)]
            shown += [str(run.error), str(await engine.runs.view(run.id)), *map(str, records)]
    for text in [*shown, caplog.text]:
        text = text.replace(str(blocks), "").replace("${" + name + "}", "")
        # Ids are random, and times in milliseconds are what they are: both may have some digits of a secret.
        text = re.sub(r"[0-9a-f]{32,}|\b[0-9]{13}\b", "", text)
        assert [part for part in parts_in(secret, text) if part not in "postgresql:// example"] == [], text


async def test_a_redirect_shows_no_part_of_a_secret(tmp_path: Path) -> None:
    """The permitted server puts a half of it into the host that it leads to."""
    half = SECRETS["BASIC"][:14].replace(":", "-")

    def away(request: Request) -> bytes:
        return answer(307 if request.target == "/keep" else 302, location=f"http://{half}.a.example/x")

    async with http(away) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("X", SECRETS["BASIC"], [server.url])
        for method, path in (("GET", "/"), ("POST", "/keep"), ("POST", "/")):
            given = block("http", url=f"{server.url}{path}", method=method, headers={"X-Key": "${X}"})
            run = await engine.run(chain("a", a=given), {}, timeout_s=60)
            assert run.status == "failed"
            assert parts_in("zvc-uzer-qorre", str(run.error)) == [], run.error


async def test_a_block_of_weft_holds_handles_and_the_request_has_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []
    run_http = http_block.run

    async def looks(ctx: StepContext) -> Done:
        held.append(pickle.loads(pickle.dumps(ctx.params)))
        return await run_http(ctx)

    monkeypatch.setattr(http_block, "run", looks)
    value = 'a "quoted" & p/ct % value+1'
    seen: list[Request] = []

    def keep(request: Request) -> bytes:
        seen.append(request)
        return answer(200, b"{}", content_type="application/json")

    async with http(keep) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("X", value, [server.url])
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for more in (
            {"headers": {"X-Key": "Bearer ${X}"}, "query": {"key": "${X}"}, "body": {"deep": ["is ${X}"]}},
            {"headers": form, "body": {"k": "${X}"}},
            {"body": "as it is: ${X}"},
        ):
            run = await engine.run(chain("a", a=block("http", method="POST", url=f"{server.url}/", **more)), {})
            assert run.status == "succeeded", run.error
    first, second, third = seen
    assert first.headers["x-key"] == f"Bearer {value}" and orjson.loads(first.body) == {"deep": [f"is {value}"]}
    assert first.target == "/?key=a+%22quoted%22+%26+p%2Fct+%25+value%2B1"
    assert second.body == b"k=a+%22quoted%22+%26+p%2Fct+%25+value%2B1" and third.body == f"as it is: {value}".encode()
    assert len(held) == 3 and value not in str(held) and "quoted" not in repr(held)
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    assert b"quoted" not in data and b"wefth" not in data, "neither the value nor a handle is recorded"


async def test_a_handle_of_another_block_call_opens_nothing(tmp_path: Path) -> None:
    async with serve() as service, opened(tmp_path, service.place) as engine:
        await engine.secrets.set("X", "a value that is long", [service.url])
        await engine.parts.vault.open(["X"])
        handle = engine.parts.vault.values["X"]
        assert "value" not in handle
        given = block("http", method="POST", url=f"{service.url}/x", body={"k": handle})
        run = await engine.run(chain("a", a=given), {}, timeout_s=60)
        assert run.error is not None and run.error["code"] == "secret_misplaced" and service.calls == []


@pytest.mark.parametrize("stored", ["secret", "connection"])
async def test_a_host_without_a_port_means_https_on_443(tmp_path: Path, stored: str) -> None:
    async with http(lambda _: answer(200, b"{}")) as server, opened(tmp_path, server.place) as engine:
        host = server.place.partition(":")[0]
        for hosts, sent in (
            ([host], False),
            ([server.place], False),
            ([f"https://{server.place}"], False),
            ([f"http://{host}:1"], False),
            ([f"http://{server.place}"], True),
        ):
            if stored == "secret":
                await engine.secrets.set("X", "a value that is long", hosts)
                given = block("http", url=f"{server.url}/", headers={"X-Key": "${X}"})
            else:
                await engine.connections.put("x", Connection("bearer", "a value that is long"), hosts)
                given = block("http", url=f"{server.url}/", connection="x")
            before = len(server.seen)
            run = await engine.run(chain("a", a=given), {}, timeout_s=60)
            assert (run.status == "succeeded", len(server.seen) > before) == (sent, sent), (hosts, run.error)
            if not sent:
                assert run.error is not None and run.error["code"] == "secret_host_refused"
                assert f"--hosts http://{server.place}" in run.error["hint"]
                assert ("means https on port 443" in run.error["hint"]) == (hosts in ([host], [server.place]))


TOLD = "a-secret-of-many-words"


def cjk(text: str) -> str:
    return text.encode().decode("utf-16-le")


@pytest.mark.parametrize("stored", ["secret", "connection"])
@pytest.mark.parametrize(
    "charset", ["cp037", "utf-16-le", "utf-16", "utf-32", "utf-7", "rot13", "hex", "big5", "cp1140"]
)
@pytest.mark.parametrize("body", ["{key}", "\ufeff{key}", "\xff\xfe{key}", "[1, {key}", '["{key}"]'])
async def test_a_server_cannot_return_a_secret_in_other_letters(
    tmp_path: Path, stored: str, charset: str, body: str
) -> None:
    """It says that the bytes are of a charset in which they are other letters; who knows it can go back."""

    def mirror(request: Request) -> bytes:
        key = request.headers["authorization"].removeprefix("Bearer ")
        kind = "application/json" if body.startswith("[") else "text/plain"
        sent = body.format(key=key).encode("utf-8" if "\ufeff" in body else "latin-1")
        return answer(400 if request.target == "/error" else 200, sent, content_type=f"{kind}; charset={charset}")

    async with http(mirror) as server, opened(tmp_path, server.place) as engine:
        if stored == "secret":
            await engine.secrets.set("X", TOLD, [server.url])
            signed: dict[str, Any] = {"headers": {"Authorization": "Bearer ${X}"}}
        else:
            await engine.connections.put("x", Connection("bearer", TOLD), [server.url])
            signed = {"connection": "x"}
        for path in ("/", "/error", "/file"):
            given = block("http", url=f"{server.url}{path}", save_file=path == "/file", **signed)
            document = chain("a", a=given)
            if path == "/file":
                spells = block("function", code="return <a.body>.text.split('').join(' ')", files="text")
                document = chain("a", "b", a=given, b=spells)
            run = await engine.run(document, {}, timeout_s=60)
            if path == "/file":  # code may write it as it likes
                assert run.status == "succeeded" or "is not text" in str(run.error), run.error
                assert " ".join(TOLD) not in str(run.output) and " ".join(cjk(TOLD)) not in str(run.output)
                continue
            seen = str(run.error or run.output)
            assert TOLD not in seen
            letters = str(run.output["body"]) if run.output else seen
            for codec in (charset, "utf-16-le", "utf-16-be", "utf-8", "cp037"):
                if codec not in ("rot13", "hex"):
                    back = letters.encode(codec, "ignore") + letters.encode("latin-1", "ignore")
                    assert TOLD.encode() not in back and TOLD.encode("utf-16-le") not in back, (codec, letters)


@pytest.mark.parametrize(
    ("charset", "sent"),
    [
        ("utf-8", "grün".encode()),
        ("iso-8859-1", "grün".encode("latin-1")),
        ("windows-1252", "grün".encode("cp1252")),
        ("utf-16", "grün".encode("utf-16")),
    ],
)
async def test_the_usual_charsets_are_text(tmp_path: Path, charset: str, sent: bytes) -> None:
    async with (
        http(lambda _: answer(200, sent, content_type=f"text/plain; charset={charset}")) as server,
        opened(tmp_path, server.place) as engine,
    ):
        run = await engine.run(chain("a", a=block("http", url=f"{server.url}/")), {}, timeout_s=60)
        assert run.output is not None and run.output["body"] == "grün"


@pytest.mark.parametrize("header", ["Range", "range", "If-Range", "A-IM"])
@pytest.mark.parametrize("stored", ["secret", "connection"])
async def test_a_request_with_a_secret_asks_for_no_part(tmp_path: Path, stored: str, header: str) -> None:
    async with http(lambda _: answer(206, b"half")) as server, opened(tmp_path, server.place) as engine:
        await engine.secrets.set("X", TOLD, [server.url])
        await engine.connections.put("x", Connection("bearer", TOLD), [server.url])
        headers = {header: "bytes=0-8"}
        signed: dict[str, Any] = {"connection": "x"} if stored == "connection" else {"query": {"key": "${X}"}}
        given = block("http", url=f"{server.url}/", headers=headers, **signed)
        run = await engine.run(chain("a", a=given), {}, timeout_s=60)
        assert run.error is not None and run.error["code"] == "secret_misplaced" and server.seen == []
        run = await engine.run(chain("a", a=block("http", url=f"{server.url}/", headers=headers)), {}, timeout_s=60)
        assert run.status == "succeeded", run.error


async def test_a_credential_of_a_connection_is_a_handle(tmp_path: Path) -> None:
    seen: list[Request] = []

    def keep(request: Request) -> bytes:
        seen.append(request)
        return answer(200, b"1")

    async with http(keep) as server, opened(tmp_path, server.place) as engine:
        kinds = [
            Connection("bearer", TOLD), Connection("basic", TOLD, "ada"),
            Connection("api_key", TOLD, name="X-Key", prefix="Key "),
            Connection("api_key", TOLD, where="query", name="k"),
        ]  # fmt: skip
        for connection in kinds:
            await engine.connections.put("x", connection, [server.url])
            assert TOLD not in repr(await engine.parts.connections.get("x"))
            given = block("http", url=f"{server.url}/?a=1", connection="x")
            run = await engine.run(chain("a", a=given), {}, timeout_s=60)
            assert run.status == "succeeded" and TOLD not in str(run.output), run.error
    assert [request.headers.get("authorization") for request in seen[:2]] == [
        f"Bearer {TOLD}", "Basic " + b64encode(f"ada:{TOLD}".encode()).decode(),
    ]  # fmt: skip
    assert seen[2].headers["x-key"] == f"Key {TOLD}" and seen[3].target == f"/?a=1&k={TOLD}"
