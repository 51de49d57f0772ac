"""Each template has everything but what a person connects, and runs when that is there: stand-ins of its services
answer by the cases that are recorded for connectors, and a scripted model answers for the agents.

`templates.json` has the input of each template, what a person chooses (`fill`), their answers, what services return
that the recorded cases do not have, and the operations that are requested."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
import pytest

from compiler.compile import compile_document
from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.document import Connector, Operation
from executor.blocks.connectors.stored import connectors
from executor.blocks.connectors.template import PLACEHOLDER
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from server.api.server import read_examples
from tests.examples.test_examples import blocks_are_apart
from tests.support.dev_model import dev_model
from tests.support.endpoints import Request, Server, answer, http
from weft import testing

FOLDER = Path(__file__).parents[2] / "examples" / "templates"
RECORDED = Path(__file__).parents[1] / "unit/executor/blocks/connectors/recorded"
Json = dict[str, Any]
PLAYED: dict[str, Json] = orjson.loads((Path(__file__).parent / "templates.json").read_bytes())
SERVICES: dict[str, Connector] = {
    block.connector.service: block.connector for block in connectors() if isinstance(block, ConnectorBlock)
}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(connectors(), sandbox=sandbox)
    sandbox.close()


def template(name: str) -> Json:
    document: Json = json.loads((FOLDER / f"{name}.json").read_text())
    return document


def test_there_are_templates_and_each_is_played() -> None:
    assert len(PLAYED) >= 25
    assert {path.stem for path in FOLDER.glob("*.json")} == set(PLAYED)
    shown = {one.name: one for one in read_examples(FOLDER.parent) if one.template}
    assert set(shown) == set(PLAYED)
    listed = (FOLDER.parent / "README.md").read_text()
    for name, one in shown.items():
        assert one.title[0].isupper() and f"[{name}](templates/{name}.json)" in listed


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_only_what_a_person_connects_is_missing(name: str, registry: Registry) -> None:
    document = template(name)
    assert document["name"] == name and len(document["description"]) < 260
    blocks_are_apart(document)
    compiled = compile_document(document, registry)
    assert {one.code for one in compiled.diagnostics} <= {"required"}
    open_fields = {one.pointer.split("/")[2] for one in compiled.diagnostics}
    assert open_fields == {id for id, block in document["blocks"].items() if block["type"].startswith("connector.")}
    assert not re.search(r"\$\{[A-Z]", json.dumps(document))
    assert compile_document(filled(name, "http://127.0.0.1:1"), registry).diagnostics == []


def filled(name: str, address: str) -> Json:
    """Return the template as someone has filled it in, with stand-ins for the services."""
    document = template(name)
    for id, block in document["blocks"].items():
        params = block["params"]
        params |= PLAYED[name]["fill"].get(id, {})
        kind, _, service = block["type"].partition("connector.")
        if not kind:
            params |= {"base_url": f"{address}/{service}", "credential": "sekret-1234"}
    return document


@asynccontextmanager
async def stand_ins(name: str) -> AsyncIterator[tuple[Server, list[str]]]:
    """Serve all services of the template. Yields the operations that were requested, too."""
    asked: list[str] = []

    def play(request: Request) -> bytes:
        path = urlsplit(request.target).path
        _, service, rest = path.split("/", 2)
        operation = requested(SERVICES[service], request, f"/{rest}")
        asked.append(f"{service}.{operation}")
        body = answered(name, service, operation)
        content = body.encode() if isinstance(body, str) else orjson.dumps(body)
        return answer(200, content, content_type="text/plain" if isinstance(body, str) else "application/json")

    async with http(play) as server:
        yield server, asked


def requested(connector: Connector, request: Request, path: str) -> str:
    """Return the operation that makes this request: also where several have one address."""
    query = dict(parse_qsl(urlsplit(request.target).query))
    for id, one in connector.operations.items():
        there = one.method == request.method and pattern(one).fullmatch(path)
        names = {**one.query, "appid": "{{key}}", one.pages.name if one.pages else "": "{{page}}"}
        if there and fits(names, query) and (not request.body or fits(one.body, body_of(request))):
            return id
    raise AssertionError(f"{connector.service} has no operation for {request.method} {request.target}")


def pattern(operation: Operation) -> re.Pattern[str]:
    parts = PLACEHOLDER.split(operation.path)  # text, plus, name, text, …
    return re.compile("".join("[^/]+" if n % 3 == 2 else re.escape(part) for n, part in enumerate(parts) if n % 3 != 1))


def body_of(request: Request) -> Any:
    if "json" in request.headers.get("content-type", ""):
        return orjson.loads(request.body)
    form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    return dict(parse_qsl(request.body.decode())) if form else request.body.decode()


def fits(template: Any, sent: Any) -> bool:
    """Return True if all that was sent has a place in the template."""
    if isinstance(template, str) or template is None:
        template = template or ""
        return template == sent or PLACEHOLDER.search(template) is not None
    if isinstance(template, dict) and isinstance(sent, dict):
        return "$mime" in str(template) or all(
            name in template and fits(template[name], value) for name, value in sent.items()
        )
    return (
        not isinstance(template, list) or not isinstance(sent, list) or all(fits(template[0], value) for value in sent)
    )


def answered(name: str, service: str, operation: str) -> Any:
    own = PLAYED[name]["services"]
    if f"{service}.{operation}" in own:
        return own[f"{service}.{operation}"]
    cases = orjson.loads((RECORDED / f"{service}.json").read_bytes())["cases"]
    good = [one["answers"][-1]["body"] for one in cases if one["operation"] == operation and "error" not in one]
    assert good, f"no case is recorded for {service}.{operation}"
    return good[0] if good[0] is not None else {}


@pytest.mark.parametrize("name", sorted(PLAYED))
async def test_it_runs(name: str) -> None:
    its = PLAYED[name]
    async with stand_ins(name) as (server, asked), dev_model() as model:
        document = filled(name, server.url)
        async with testing.engine(models={"dev": model.url}, allow_private=[server.place, model.place]) as engine:
            submitted = await engine.submit(document, input=its["input"])
            view = await testing.finish(engine, submitted.run, its["answers"])
            assert view.status == "succeeded", [(node.key, node.error) for node in view.nodes if node.error]
        assert sorted(asked) == sorted(its["asked"])


# Those whose stand-ins can say what a lost request did: none is asked about, or all of it can be repeated.
CRASHED = ("sync-contacts", "weather-alert")


@pytest.mark.proof
@pytest.mark.timeout(900)  # two processes for each commit
@pytest.mark.parametrize("name", CRASHED)
async def test_it_survives_a_crash_at_each_commit(name: str) -> None:
    its = PLAYED[name]
    async with stand_ins(name) as (server, _), dev_model() as model:
        report = await testing.crash_everywhere(
            filled(name, server.url),
            its["input"],
            answers=its["answers"],
            models={"dev": model.url},
            allow_private=[server.place, model.place],
        )
    assert report.ok and report.status == "succeeded" and report.crashes > 4
