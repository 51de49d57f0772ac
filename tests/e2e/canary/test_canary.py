"""Two stored secrets and a connection go through every kind of block, a service writes them back in every spelling,
and then they are looked for in all that the server shows, streams, stores, logs, exports and prints: 0 hits."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import httpx
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from server.api import TABLE
from tests.e2e.canary.spellings import SPELLINGS, forms_of
from tests.e2e.canary.workflows import CHILD, CONNECTIONS, HOOK, workflows
from tests.support.dev_model import dev_model
from tests.support.documents import Json
from tests.support.endpoints import Request, answer, http, smtp
from tests.support.place import Place
from tests.support.server import ROOT, ServerProcess, free_port
from tests.support.size import size

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1500)]

SECRETS = {"CANARY": 'c4nary/"T+=?&ö-0815', "PLAIN": "an0ther-c4nary-4711"}
LINKED = "l1nked-c4nary=4712"  # of the connections
DSN_PASSWORD = "dsn+pa55word/x"  # a part of a secret: it may be quoted alone
OF_POSTGRES = {"WEFT_SECRET_KEY": "a secret for tests only"}  # a server with a file has its key beside that
ENDS = ("succeeded", "failed", "cancelled")
READS = [
    route.path
    for route in TABLE
    if route.method == "GET" and route.path.startswith("/api/runs/{id}") and "{key}" not in route.path
]
OF_SERVER = [route.path for route in TABLE if route.method == "GET" and "{" not in route.path]
PARTS = size(2, 4)
ALL = dict(workflows("http://h", "http://h", "http://h", "h:1"))


class Service:
    """Writes what it got into its answers. `received`: which secrets came as they are."""

    def __init__(self) -> None:
        self.received: set[str] = set()

    def handle(self, request: Request) -> bytes:
        kind, how = request.target.partition("?")[0].strip("/").split("/")[-2:]
        with suppress(ValueError):  # an endpoint of models: the name of the model says how
            body = json.loads(request.body)
            how = str(body.get("model", how)) if isinstance(body, dict) else how
        seen = unquote(request.target) + str(request.headers) + request.body.decode()
        all_secrets = {**SECRETS, "LINKED": LINKED}
        self.received |= {name for name, secret in all_secrets.items() if secret.split('"')[0] in seen}
        spelled = [SPELLINGS.get(how, str)(secret) for secret in all_secrets.values()]
        text = f"it was {spelled[0]} and {spelled[1]} and {spelled[2]}: refused"
        match kind:
            case "json":
                shown = json.dumps({"text": text, "deep": [{text: text}], "n": 1}).encode()
                return answer(200, shown, content_type="application/json")
            case "header":
                line = re.sub(r"=?[\r\n]+|\0", "", text).encode().decode("latin-1")
                return answer(200, b"{}", content_type="application/json", x_echo=line)
            case "file":  # its bytes are stored as they are; what it is called is not
                name = re.sub(r"=?[\r\n]+|[\0\"]", "", f"it was {spelled[1]}")
                return answer(200, b"bytes", content_disposition=f'attachment; filename="{name}.bin"')
            case "redirect":
                return answer(302, location=f"http://127.0.0.1:1/{quote(text)}")
            case "short":
                return answer(200, f"it was {spelled[2]}".encode(), content_type="text/plain; charset=utf-8")
            case "broken":
                return answer(200, f"{{{text}".encode(), content_type="application/json")
            case "fail" | "completions":
                shown = json.dumps({"error": {"message": text, "type": "invalid", "code": "refused"}}).encode()
                return answer(401 if kind == "completions" else 500, shown, content_type="application/json")
            case _:
                return answer(200, text.encode(), content_type="text/plain; charset=utf-8")


class Sweep:
    """A server, and all that was seen of it, by where it was seen."""

    def __init__(self, client: httpx.AsyncClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.seen: dict[str, bytes] = {}

    async def run(self, name: str, document: Json, how: str) -> None:
        """One run to its end, with all that can be asked about it meanwhile and then."""
        started = await self.client.post(f"/api/workflows/{document['name']}/runs", json={"input": {"how": how}})
        assert started.status_code in (200, 201, 202), started.text
        run = started.json()["run"]
        where = f"{name} {how} {run}"
        following = asyncio.create_task(self._follow(f"{where} stream", run))
        asked: set[str] = set()
        async with asyncio.timeout(300):
            while (view := (await self.client.get(f"/api/runs/{run}")).json())["status"] not in ENDS:
                if view["status"] == "waiting":
                    await self._answer(where, run, how, asked)
                await asyncio.sleep(0.1)
            await following
        # No correlation and no memory has a name with a NUL.
        refused = name in ("signal", "agent-memory") and "\0" in SPELLINGS[how](SECRETS["PLAIN"])
        if name != "http-closed" and name != "sql-refused" and name != "http-refused" and not refused:
            assert view["status"] == ("failed" if "again" in document["blocks"] else "succeeded"), (
                where,
                view["error"],
            )
        for path in READS:
            url = path.replace("{id}", run).replace("{other}", run)
            await self.get(f"{where} {path}", url)
        for key in (*document["blocks"], "item@each#0", "item@each[0]"):
            await self.get(f"{where} node {key}", f"/api/runs/{run}/nodes/{quote(key, safe='')}")
        marked = b"".join(content for place, content in self.seen.items() if place.startswith(where))
        assert b"[redacted]" in marked, f"{where}: nothing of the secret came back"

    async def _follow(self, where: str, run: str) -> None:
        pieces = []
        headers = {"accept": "text/event-stream"}
        async with self.client.stream("GET", f"/api/runs/{run}/events", headers=headers, timeout=300) as stream:
            async for piece in stream.aiter_bytes():
                pieces.append(piece)
        self.seen[where] = b"".join(pieces)

    async def get(self, where: str, url: str) -> None:
        async with self.client.stream("GET", url, headers={"accept": "application/json, text/html"}) as response:
            if "event-stream" not in response.headers.get("content-type", ""):
                self.seen[where] = str(response.headers).encode() + await response.aread()

    async def _left(self, run: str) -> bool:
        """Whether the run has stopped waiting, soon."""
        for _ in range(50):
            if (await self.client.get(f"/api/runs/{run}")).json()["status"] != "waiting":
                return True
            await asyncio.sleep(0.1)
        return False

    async def _answer(self, where: str, run: str, how: str, asked: set[str]) -> None:
        """The person who answers types a secret, too."""
        typed = SPELLINGS[how](SECRETS["PLAIN"])
        for wait in (await self.client.get("/api/waits", params={"run": run})).json()["waits"]:
            key = wait["key"]
            if key in asked:
                continue
            asked.add(key)
            self.seen[f"{where} wait {key}"] = json.dumps(wait).encode()
            await self.get(f"{where} wait {key} of the run", f"/api/runs/{run}/waits/{key}")
            if wait["kind"] == "signal":
                signal = {"payload": {"text": typed, typed: 1}, "correlation": self._correlation(wait)}
                sent = await self.client.post(f"/api/runs/{run}/signals/go", json=signal)
                self.seen[f"{where} signal {key}"] = sent.content
                if sent.status_code >= 300 or not await self._left(run):
                    await self.client.post(f"/api/runs/{run}/cancel", json={"reason": typed})
                continue
            if not wait.get("link"):
                continue  # it has ended meanwhile, or is for a program
            link = httpx.URL(wait["link"]).path
            for accept in ("text/html", "application/json"):
                page = await self.client.get(link, headers={"accept": accept})
                self.seen[f"{where} wait {key} page {accept}"] = page.content
            body = {"action": "yes", "fields": {"note": typed}}
            sent = await self.client.post(link, json={"text": typed} if wait["kind"] == "callback" else body)
            if sent.status_code == 422:  # a form has one action of its own
                sent = await self.client.post(link, json={"fields": {"note": typed}})
            assert sent.status_code < 300, (where, wait, sent.text)
            self.seen[f"{where} wait {key} answer"] = sent.content

    @staticmethod
    def _correlation(wait: Json) -> Any:
        return wait.get("correlation")

    def hits(self) -> list[tuple[str, str, bytes]]:
        secrets = {**SECRETS, "password": DSN_PASSWORD, "linked": LINKED}
        forms = {f"{name} {how}": form for name, secret in secrets.items() for how, form in forms_of(secret).items()}
        found = []
        for place, content in self.seen.items():
            lowered = content.lower()
            for what, form in forms.items():
                if (at := lowered.find(form)) >= 0:
                    found.append((place, what, content[max(0, at - 60) : at + 80]))
        return found


def _refusals() -> dict[str, str]:
    """Of a mail server, which quotes the secret, to the recipient `<spelling>@example.org`."""
    said = {how: " ".join(spell(SECRETS["PLAIN"]).replace("\0", " ").split()) for how, spell in SPELLINGS.items()}
    return {f"RCPT TO:<{how}@".upper(): f"550 cannot accept {text}" for how, text in said.items()}


@asynccontextmanager
async def swept(
    folder: Path, service: Service, place: Place, **environ: str
) -> AsyncIterator[tuple[Sweep, dict[str, Json], ServerProcess]]:
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(http(service.handle))
        refusing = await stack.enter_async_context(http(service.handle))
        model = await stack.enter_async_context(
            dev_model(
                {
                    "when": {"tool": "", "offers": "fetch"},
                    "calls": [{"name": "fetch", "arguments": {"how": "base64-url"}}],
                },
                {"text": "The answer is {{last}}, as {{tool}} says.", "pause_ms": 5},
            )
        )
        mails = await stack.enter_async_context(smtp(_refusals()))
        port, closed = (free_port(random.Random()) for _ in range(2))
        environ = {
            "WEFT_ALLOW_PRIVATE": ",".join(
                [base.place, refusing.place, model.place, f"127.0.0.1:{mails.port}", f"127.0.0.1:{closed}"]
            ),
            "WEFT_MODEL_DEV": model.url,
            "WEFT_MODEL_ECHO": base.url,
            "WEFT_SQLITE_FOLDERS": str(folder / "databases"),
            "WEFT_FUNCTIONS": "tests.e2e.canary.functions:tell,tests.e2e.canary.functions:fail",
            "WEFT_MAIL_TRANSPORT": "smtp",
            "WEFT_MAIL_HOST": "127.0.0.1",
            "WEFT_MAIL_PORT": str(mails.port),
            "WEFT_MAIL_STARTTLS": "false",
            "WEFT_LOG": "debug",
            **environ,
        }
        (folder / "databases").mkdir()
        sqlite3.connect(folder / "databases" / "canary.db").close()
        server = await ServerProcess.start(place, port, folder / "log", **environ)
        try:
            await server.ready()
            client = await stack.enter_async_context(
                httpx.AsyncClient(base_url=server.url, timeout=120, trust_env=False)
            )
            dsn = f"postgresql://u:{quote(DSN_PASSWORD, safe='')}@127.0.0.1:{closed}/d"
            for name, value in {**SECRETS, "DSN": dsn}.items():
                hosts = [base.url, f"http://{model.place}", f"http://127.0.0.1:{closed}", f"127.0.0.1:{closed}"]
                put = await client.put(f"/api/secrets/{name}", json={"value": value, "hosts": hosts})
                assert put.status_code < 300, put.text
            hosts += [f"127.0.0.1:{mails.port}"]
            for name, kind in CONNECTIONS.items():
                put = await client.put(f"/api/connections/{name}", json={**kind, "secret": LINKED, "hosts": hosts})
                assert put.status_code < 300, put.text
            for document in (CHILD, HOOK):
                assert (await client.post("/api/workflows", json=document)).status_code == 201
            places = f"http://127.0.0.1:{closed}", f"127.0.0.1:{mails.port}"
            yield Sweep(client, folder), workflows(base.url, refusing.url, *places), server
        finally:
            await server.clean_up()


async def swept_through(folder: Path, names: list[str], spellings: list[str], postgres: str | None = None) -> None:
    """`postgres`: the address of the database, in place of a file."""
    service, place = Service(), postgres or folder / "weft.db"
    keys = OF_POSTGRES if postgres else {}
    async with swept(folder, service, place, **keys) as (sweep, documents, server):
        for name in names:
            saved = await sweep.client.post("/api/workflows", json=documents[name])
            assert saved.status_code == 201, (name, saved.text)
            await asyncio.gather(*(sweep.run(name, documents[name], how) for how in spellings))
        for how in spellings:
            hook = {"text": f"x {SPELLINGS[how](SECRETS['PLAIN'])} y"}
            sweep.seen[f"hook {how}"] = (await sweep.client.post("/hooks/canary-hook:hook", json=hook)).content
        for path in OF_SERVER:
            await sweep.get(path, path)
        runs = (await sweep.client.get("/api/runs", params={"limit": 1000})).json()["runs"]
        shown = commands(folder, names, [run["id"] for run in runs], is_file=postgres is None)
        for at, arguments in enumerate(shown):
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-m", "server", *arguments],
                cwd=ROOT,
                env={**os.environ, **keys, "WEFT_URL": server.url, "WEFT_DB": str(place)},
                capture_output=True,
                check=False,
                timeout=120,
            )
            sweep.seen[f"weft {' '.join(arguments)} {at}"] = done.stdout + done.stderr
            assert done.returncode in (0, 1, 3), (arguments, done.stderr)
        for file in sorted(folder.rglob("*")):  # with the log of SQLite, as a copy by another user would have it
            if file.is_file():
                sweep.seen[f"file {file.name} of a running server"] = file.read_bytes()
        if postgres is not None:
            sweep.seen |= tables_of(postgres)
        assert await server.stop(60) == 0
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                sweep.seen[f"file {file.name}"] = file.read_bytes()
        assert service.received == {*SECRETS, "LINKED"}, "the service got them as they are"
        hits = sweep.hits()
        print(f"{len(sweep.seen)} places, {sum(map(len, sweep.seen.values())) >> 20} MiB, {len(hits)} hits")
        assert not hits, hits[:20]


def tables_of(address: str) -> dict[str, bytes]:
    """All rows of all tables, with texts and bytes as they are."""
    found = {}
    with psycopg.connect(address) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            copied = SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT binary)").format(Identifier(table))
            with connection.cursor().copy(copied) as copy:
                found[f"table {table}"] = b"".join(bytes(piece) for piece in copy)
    assert len(b"".join(found.values())) > 100_000, "there are rows"
    return found


def commands(folder: Path, names: list[str], runs: list[str], *, is_file: bool) -> Iterator[tuple[str, ...]]:
    for run in runs[::17]:
        yield ("events", run)
        yield ("events", run, "--json")
        yield ("why", run)
    yield ("runs", "--limit", "1000")
    yield ("sql", "SELECT * FROM runs")
    for name in names[:: size(4, 1)]:
        yield ("export", f"canary-{name}", "--format", "sqlite", "--to", str(folder / f"{name}.db"))
    if is_file:
        yield ("backup", str(folder / "copy.db"))
    yield ("doctor",)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
async def test_no_secret_comes_out(part: int, tmp_path: Path) -> None:
    """Every workflow, with each sixth spelling, and with all in `make soak`."""
    await swept_through(tmp_path, list(ALL)[part::PARTS], list(SPELLINGS)[part :: size(6, 1)])


async def test_no_secret_comes_out_of_postgresql(tmp_path: Path, postgres: str) -> None:
    """Blocks and pages do the same with secrets there: a fourth of the workflows and an eighth of spellings suffice."""
    await swept_through(tmp_path, list(ALL)[::4], list(SPELLINGS)[::8], postgres)


def test_the_sweep_is_as_large_as_it_says() -> None:
    assert len(ALL) >= 28 and len(SPELLINGS) >= 15
