"""A token for some workflows uses only the files of their runs, and those that it uploaded: to know an id is no way to
the content of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import httpx
import orjson
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.app import create_app
from server.settings import Settings
from tests.support.api import ended
from tests.unit.server.conftest import BASE

Json = dict[str, Any]
SERVER = {"authorization": "Bearer the-server-token"}
RAW = {"content-type": "application/octet-stream"}
SECRET = "the salary of Ada"
NOT_YOURS = (403, "file_not_yours")


def document(name: str, first: Json, reads: str, **blocks: Json) -> Json:
    """`first`, then `blocks` in their order, then one that reads the file `reads` and puts out its text."""
    code = {"type": "function", "params": {"files": "text", "code": f"return {reads}.text"}}
    order = {"start": first, **blocks, "read": code}
    ids = list(order)
    edges = [{"source": one, "target": two} for one, two in pairwise(ids)]
    return {"format": "weft/1", "name": name, "blocks": order, "edges": edges}


READER = document("reader", {"type": "start"}, "<input.file>")
ASKS = {"type": "object", "required": ["file"], "properties": {"file": {"format": "file"}}}
ASK = {"type": "form", "params": {"title": "Which?", "fields": ASKS}}
ASKING = document("reader", {"type": "start"}, "<ask.file>", ask=ASK)


class World:
    """A server where `file` was uploaded by another, and `narrow` is for the workflow `reader`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.narrow: dict[str, str] = {}
        self.file: Json = {}

    async def token(self, **more: Any) -> dict[str, str]:
        made = await self.http.post("/api/tokens", json={"name": "t", "role": "editor", **more}, headers=SERVER)
        return {"authorization": f"Bearer {made.json()['token']}"}

    async def upload(self, text: str, who: dict[str, str]) -> Json:
        made = await self.http.post("/api/files?name=a.txt", content=text.encode(), headers={**who, **RAW})
        assert made.status_code == 201, made.text
        return dict(made.json())

    async def store(self, made: Json) -> None:
        stored = await self.http.post("/api/workflows", json=made, headers=SERVER)
        assert stored.status_code in (200, 201), stored.text

    async def start(self, input: Json, who: dict[str, str], workflow: str = "reader") -> httpx.Response:
        return await self.http.post(f"/api/workflows/{workflow}/runs", json={"input": input}, headers=who)

    async def end_of(self, started: httpx.Response) -> Json:
        assert started.status_code in (200, 202), started.text
        self.http.headers.update(SERVER)
        try:
            return await ended(self.http, started.json()["run"])
        finally:
            del self.http.headers["authorization"]

    async def wait_of(self, run: str) -> Json:
        (await self.http.get(f"/api/runs/{run}?wait=30", headers=SERVER)).raise_for_status()
        [wait] = (await self.http.get(f"/api/waits?run={run}", headers=SERVER)).json()["waits"]
        return dict(wait)

    async def check_closed(self) -> None:
        """The token still cannot read it, neither itself nor by what a run of its workflow has put out."""
        assert (await self.http.get(f"/api/files/{self.file['id']}", headers=self.narrow)).status_code == 403
        for row in (await self.http.get("/api/runs?workflow=reader", headers=SERVER)).json()["runs"]:
            events = await self.http.get(
                f"/api/runs/{row['id']}/events", headers={**SERVER, "accept": "application/json"}
            )
            assert SECRET not in events.text


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-server-token"), engine)


@pytest.fixture
async def world(closed: Starlette) -> AsyncIterator[World]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE) as http:
        world = World(http)
        await world.store(READER)
        world.narrow = await world.token(workflows=["reader"])
        uploaded = await world.upload(SECRET, SERVER)
        world.file = {"type": "file", "id": uploaded["id"]}
        held = await world.start({"file": world.file}, SERVER, "reader")  # so it exists, but of a run that goes
        run = (await world.end_of(held))["id"]
        await world.http.delete(f"/api/runs/{run}", headers=SERVER)
        yield world


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_what_the_token_uploaded_it_can_use(world: World) -> None:
    file = await world.upload("mine", world.narrow)
    assert len(file["proof"]) == 64 and "proof" not in await world.upload("x", SERVER)
    run = await world.end_of(await world.start({"file": file}, world.narrow))
    assert run["output"]["result"] == "mine"
    assert "proof" not in run["input"]["file"], "it is for the server, not for the run"
    bare = {"type": "file", "id": file["id"]}
    again = await world.end_of(await world.start({"file": bare}, world.narrow))
    assert again["output"]["result"] == "mine", "a run of its workflow has the file now"


async def test_a_proof_is_of_one_token_and_one_file(world: World) -> None:
    mine = await world.upload("mine", world.narrow)
    other = await world.token(workflows=["reader"])
    for sent, who in (
        (mine, other),
        ({**world.file, "proof": mine["proof"]}, world.narrow),
        ({**mine, "proof": "é"}, other),
    ):
        refused = await world.start({"file": sent}, who)
        assert (*refusal(refused), refused.json()["pointer"]) == (*NOT_YOURS, "/input/file/id")


async def test_inputs_signals_and_outputs_that_the_token_sends(world: World) -> None:
    unknown = {"type": "file", "id": "file_" + "0" * 64}
    for file in (world.file, unknown):  # the same answer, so it does not say which files there are
        refused = await world.start({"deep": [{"file": file}]}, world.narrow)
        assert (*refusal(refused), refused.json()["pointer"]) == (*NOT_YOURS, "/input/deep/0/file/id")
    mine = await world.upload("mine", world.narrow)
    run = (await world.end_of(await world.start({"file": mine}, world.narrow)))["id"]
    path, sent = f"/api/runs/{run}", world.file
    for body, pointer in (
        (("rerun", {"input": {"file": sent}}), "/input/file/id"),
        (("fork", {"seq": 2, "outputs": {"start": {"file": sent}}}), "/outputs/start/file/id"),
        (("signals/go", {"payload": {"file": sent}}), "/payload/file/id"),
    ):
        refused = await world.http.post(f"{path}/{body[0]}", json=body[1], headers=world.narrow)
        assert (*refusal(refused), refused.json()["pointer"]) == (*NOT_YOURS, pointer), body[0]
    await world.check_closed()


async def test_a_fork_with_a_file_that_may_be_used(world: World) -> None:
    mine, more = await world.upload("mine", world.narrow), await world.upload("more", world.narrow)
    await world.store(document("reader", {"type": "start"}, "<start.file>"))
    run = (await world.end_of(await world.start({"file": mine}, world.narrow)))["id"]
    body = {"seq": 3, "outputs": {"start": {"file": more}}}
    fork = await world.http.post(f"/api/runs/{run}/fork", json=body, headers=world.narrow)
    assert (await world.end_of(fork))["output"]["result"] == "more"


async def test_answers_by_a_link(world: World) -> None:
    await world.store(ASKING)
    run = (await world.start({}, world.narrow)).json()["run"]
    link = httpx.URL((await world.wait_of(run))["link"]).path
    for who in (world.narrow, {}):
        refused = await world.http.post(f"/api{link}", json={"fields": {"file": world.file}}, headers=who)
        assert (*refusal(refused), refused.json()["pointer"]) == (*NOT_YOURS, "/fields/file/id")
    typed = await world.http.post(link, data={"field.file": orjson.dumps(world.file).decode()})
    assert typed.status_code == 403, "a text in place of an upload"
    await world.check_closed()
    came = await world.http.post(link, files={"field.file": ("a.txt", b"with the answer")})
    assert came.status_code == 200, came.text
    run_id = f"/api/runs/{run}?wait=30"
    assert (await world.http.get(run_id, headers=SERVER)).json()["output"]["result"] == "with the answer"


async def test_who_may_use_all_files_answers_with_any(world: World) -> None:
    await world.store(ASKING)
    run = (await world.start({}, SERVER)).json()["run"]
    link = httpx.URL((await world.wait_of(run))["link"]).path
    done = await world.http.post(f"/api{link}", json={"fields": {"file": world.file}}, headers=SERVER)
    assert done.status_code == 200, done.text
    view = (await world.http.get(f"/api/runs/{run}?wait=30", headers=SERVER)).json()
    assert view["output"]["result"] == SECRET


async def test_tools_of_mcp(world: World) -> None:
    described = {**READER, "input": {"type": "object", "properties": {"file": {}}}}
    await world.store(described)
    call = {"name": "run_reader", "arguments": {"file": world.file}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = await world.http.post("/mcp", json=sent, headers=world.narrow)
    assert answer.json()["result"]["structuredContent"]["error"]["code"] == "file_not_yours"
    await world.store(ASKING)
    run = (await world.start({}, world.narrow)).json()["run"]
    wait = await world.wait_of(run)
    call = {"name": "answer", "arguments": {"run": run, "wait": wait["id"], "fields": {"file": world.file}}}
    sent = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    answer = await world.http.post("/mcp", json=sent, headers=world.narrow)
    assert answer.json()["result"]["structuredContent"]["error"]["code"] == "file_not_yours"
    await world.check_closed()


async def test_public_forms(world: World) -> None:
    page = {"type": "form_trigger", "params": {"title": "Apply", "fields": ASKS}}
    await world.store(document("reader", page, "<input.file>"))
    [form] = (await world.http.get("/api/webhooks", headers=SERVER)).json()["webhooks"]
    sent = {"once": "0123456789", "field.file": orjson.dumps(world.file).decode()}
    refused = await world.http.post(httpx.URL(form["url"]).path, data=sent)
    assert refusal(refused) == NOT_YOURS
    await world.check_closed()


async def test_requests_without_a_credential_bring_no_files(world: World) -> None:
    """They are not refused, since the other side may send what it likes; but an id in them is a text."""
    hook = {"type": "webhook", "params": {"auth": "none"}}
    await world.store(document("reader", hook, "<start.body.file>"))
    sent = await world.http.post("/hooks/reader:start", json={"file": world.file})
    assert (await world.end_of(sent))["error"]["code"] == "file_not_found"
    calls = document("reader", {"type": "start"}, "<job.body.file>", job={"type": "callback", "params": {}})
    await world.store(calls)
    started = await world.start({}, world.narrow)
    path = httpx.URL((await world.wait_of(started.json()["run"]))["link"]).path
    assert (await world.http.post(path, json={"file": world.file})).status_code in (200, 202)
    assert (await world.end_of(started))["error"]["code"] == "file_not_found"
    await world.check_closed()


@pytest.mark.parametrize("how", ["literal", "code", "input", "schedule", "cache", "child", "child of another"])
async def test_ids_that_a_document_has_or_makes(world: World, how: str) -> None:
    file, id = world.file, world.file["id"]
    start: Json = {"type": "start"}
    value = {"type": "set", "params": {"value": file}}
    match how:
        case "literal":
            made = document("reader", start, "<made>", made=value)
        case "code":
            parts = f"return {{type: 'file', id: 'file_' + '{id.removeprefix('file_')}'}}"
            made = document("reader", start, "<made.result>", made={"type": "function", "params": {"code": parts}})
        case "input":  # a text is no file value, and is not refused
            value = {"type": "set", "params": {"value": {"type": "file", "id": "<input.text>"}}}
            made = document("reader", start, "<made>", made=value)
        case "schedule":
            night = {"type": "schedule", "params": {"cron": "0 3 * * *", "input": {"file": file}}}
            made = document("reader", night, "<input.file>")
        case "cache":
            again: Json = {"type": "function", "params": {"code": "return <input.text>"}}
            again["policy"] = {"cache": {"ttl_s": 3600}}
            value = {"type": "set", "params": {"value": {"type": "file", "id": "<again.result>"}}}
            made = document("reader", start, "<made>", again=again, made=value)
        case "child":
            inner = document("inner", start, "<input.file>")
            params: Json = {"definition": inner, "input": {"file": file}}
            made = document("reader", start, "<call>", call={"type": "run_workflow", "params": params})
        case _:
            await world.store(document("other", start, "<input.file>"))
            await world.end_of(await world.start({"file": file}, SERVER, "other"))  # the other workflow has it
            params = {"workflow": "other", "input": {"file": file}}
            made = document("reader", start, "<call>", call={"type": "run_workflow", "params": params})
    await world.store(made)
    for _ in range(2):
        if how == "schedule":
            started = await world.http.post("/api/schedules/reader:start/run", headers=SERVER)
        else:
            started = await world.start({"text": id}, world.narrow)
        run = await world.end_of(started)
        assert run["status"] == "failed" and "file_not_found" in orjson.dumps(run["error"]).decode(), run["error"]
    await world.check_closed()


async def test_files_go_to_child_runs_and_come_back(world: World) -> None:
    """Of a file that the parent has, and of one that the child makes; a fork has both."""
    makes = {"type": "file", "params": {"name": "b.txt", "content": "<read.result>!"}}
    inner = document("inner", {"type": "start"}, "<input.file>")
    inner["blocks"]["make"] = makes
    inner["edges"].append({"source": "read", "target": "make"})
    await world.store(inner)
    call = {"type": "run_workflow", "params": {"workflow": "inner", "input": {"file": "<input.file>"}}}
    await world.store(document("reader", {"type": "start"}, "<call>", call=call))
    mine = await world.upload("mine", world.narrow)
    run = await world.end_of(await world.start({"file": mine}, world.narrow))
    assert (run["status"], run.get("output", {}).get("result")) == ("succeeded", "mine!"), run["error"]
    rerun = await world.http.post(f"/api/runs/{run['id']}/rerun", json={"from": "read"}, headers=world.narrow)
    assert (await world.end_of(rerun))["output"]["result"] == "mine!"
