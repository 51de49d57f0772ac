"""Each template has everything but what a person connects, and runs when that is there: stand-ins of its services
answer by the cases that are recorded for connectors, and a scripted model answers for the agents.

`templates.json` has the input of each template, what a person chooses (`fill`), their answers, what services return
that the recorded cases do not have, and the operations that are requested."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from urllib.request import urlopen

import orjson
import pytest

from compiler.compile import compile_document
from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.document import Check, Connector, Operation
from executor.blocks.connectors.stored import connectors
from executor.blocks.connectors.template import PLACEHOLDER
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from executor.open.testing.outside import Outside
from executor.open.testing.process import DONE, ERROR_FILE, Process, Result, Workflow, in_child
from executor.service.views import WaitView
from server.api.server import read_examples
from tests.examples.test_examples import blocks_are_apart
from tests.support.dev_model import dev_model
from tests.support.endpoints import Request, answer, http
from weft import testing

FOLDER = Path(__file__).parents[2] / "examples" / "templates"
RECORDED = Path(__file__).parents[1] / "unit/executor/blocks/connectors/recorded"
Json = dict[str, Any]
PERSON = "person"  # the path at which a person looks at a service
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
    is_open = {id: block["type"].startswith(("connector.", "knowledge")) for id, block in document["blocks"].items()}
    assert open_fields == {id for id in is_open if is_open[id]}
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


class StandIns:
    """All services of a template. `asked`: the operations that were requested. `effects`: those that changed something,
    each with its key and its request; a service that recognizes a repetition has one. With `kill`, the process that
    asks is killed at each of them, at the first arrival before it has its effect, and at the second after it."""

    def __init__(self, name: str, kill: Callable[[], None] | None = None) -> None:
        self.name = name
        self.asked: list[str] = []
        self.effects: list[tuple[str, str, str]] = []
        self.kills = 0
        self._kill = kill
        self._arrivals: Counter[str] = Counter()
        self._received: list[tuple[Operation, Json, Any]] = []

    def play(self, request: Request) -> bytes:
        _, service, rest = urlsplit(request.target).path.split("/", 2)
        if service == PERSON:
            return self._answer(self._seen(unquote(rest)))
        connector, path = SERVICES[service], f"/{rest}"
        for operation, check in ((one, check) for one in connector.operations.values() for check in one.check):
            if (values := values_of(check, request, path)) is not None:
                return self._answer(self._found(operation, check, values))
        found = ((id, values_of(one, request, path)) for id, one in connector.operations.items())
        id, values = next(((id, values) for id, values in found if values is not None), ("", {}))
        assert id, f"{service} has no operation for {request.method} {request.target}"
        self.asked.append(f"{service}.{id}")
        if not connector.operations[id].only_reads:
            self._change(f"{service}.{id}", connector.operations[id], request, values)
        return self._answer(answered(self.name, service, id))

    def _change(self, name: str, operation: Operation, request: Request, values: Json) -> None:
        key = request.headers["idempotency-key"]
        effect = (name, key, f"{request.method} {request.target} {request.body!r}")
        self._arrivals[key] += 1
        if self._arrivals[key] == 1:
            self._killed()
        if not operation.idempotent or effect not in self.effects:
            self.effects.append(effect)
            self._received.append((operation, values, body_of(request) if request.body else None))
        if self._arrivals[key] == 2:
            self._killed()

    def _killed(self) -> None:
        if self._kill is not None:
            self._kill()
            self.kills += 1
            raise ConnectionError

    def _found(self, operation: Operation, check: Check, values: Json) -> Any:
        """Return the answer to a check: what was received, if it is where the check looks."""
        there: list[Any] = []
        for one, received, body in self._received:
            if one is operation and all(received.get(name, value) == value for name, value in values.items()):
                item: Json = {"received": body}
                for pointer in check.take.values():
                    put(item, pointer, "1.0")
                put(item, check.mark, marked(operation.body, body))
                there.append(item)
        answer: Json = {}
        put(answer, check.items, there)
        return answer if check.items else there

    def _seen(self, key: str) -> Any:
        """Return what a person who looks at the service enters as the output of a lost attempt, or None."""
        name = next((name for name, its, _ in self.effects if its == key), None)
        return None if name is None else {"status": 200, "result": answered(self.name, *name.split("."))}

    def _answer(self, body: Any) -> bytes:
        content = body.encode() if isinstance(body, str) else orjson.dumps(body)
        return answer(200, content, content_type="text/plain" if isinstance(body, str) else "application/json")


def values_of(asked: Operation | Check, request: Request, path: str) -> Json | None:
    """Return the values of the placeholders, by name. None: this is not the request, not even one of several with the
    same address."""
    pages = asked.pages if isinstance(asked, Operation) else None
    names = {**asked.query, "appid": "{{key}}", pages.name if pages else "": "{{page}}"}
    in_path = values_in(asked.path, path, "[^/]+")
    query = dict(parse_qsl(urlsplit(request.target).query))
    in_query = values_in(names, query) if isinstance(asked, Operation) or query.keys() == asked.query.keys() else None
    in_body = values_in(asked.body, body_of(request)) if request.body else {}
    if asked.method != request.method or in_path is None or in_query is None or in_body is None:
        return None
    return {**{name: unquote(value) for name, value in in_path.items()}, **in_query, **in_body}


def body_of(request: Request) -> Any:
    if "json" in request.headers.get("content-type", ""):
        return orjson.loads(request.body)
    form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    return dict(parse_qsl(request.body.decode())) if form else request.body.decode()


def values_in(template: Any, sent: Any, part: str = ".*") -> Json | None:
    if template is None or isinstance(template, str):
        pieces = PLACEHOLDER.split(template or "")  # text, plus, name, text, …
        names = pieces[2::3]
        if len(pieces) == 4 and not pieces[0] + pieces[3]:
            return {names[0]: sent}
        texts = [re.escape(piece) for piece in pieces[::3]]
        match = re.fullmatch(f"({part})".join(texts), str(sent or ""), re.DOTALL)
        return None if match is None else dict(zip(names, match.groups(), strict=True))
    if isinstance(template, dict) and isinstance(sent, dict) and "$mime" not in str(template):
        found = [values_in(template[name], value) if name in template else None for name, value in sent.items()]
    elif isinstance(template, list) and isinstance(sent, list):
        found = [values_in(template[0], value) for value in sent]
    else:
        return {}
    return None if None in found else {name: value for one in found for name, value in (one or {}).items()}


def marked(template: Any, sent: Any) -> Any:
    """Return the part of what was sent that has the key of the attempt."""
    if isinstance(template, str):
        return sent if "{{idempotency_" in template else None
    pairs = ((each, sent[name]) for name, each in (template or {}).items() if name in sent)
    return next(filter(None, (marked(*pair) for pair in pairs if isinstance(pair[0], str | dict))), None)


def put(item: Json, pointer: str, value: Any) -> None:
    """Put the value at the JSON pointer."""
    *way, last = pointer.split("/")[1:] or [""]
    for name in way:
        item = item.setdefault(name, {})
    item[last] = value


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
    services = StandIns(name)
    async with http(services.play) as server, dev_model() as model:
        document = filled(name, server.url)
        async with testing.engine(models={"dev": model.url}, allow_private=[server.place, model.place]) as engine:
            for collection, documents in its.get("knowledge", {}).items():
                await engine.knowledge.create(collection, "dev:words")
                for each, text in documents.items():
                    await testing.finish(engine, (await engine.knowledge.add(collection, each, text.encode())).run)
            submitted = await engine.submit(document, input=its["input"])
            view = await testing.finish(engine, submitted.run, its["answers"])
            assert view.status == "succeeded", [(node.key, node.error) for node in view.nodes if node.error]
            if "knowledge" in its:  # the model saw the passage
                asked = str(await model.calls())
                assert all(text in asked for text in its["knowledge"]["handbook"].values())
        assert sorted(services.asked) == sorted(its["asked"])


@pytest.mark.proof
@pytest.mark.parametrize("name", sorted(name for name in PLAYED if PLAYED[name]["asked"]))
async def test_each_effect_happens_once_when_the_process_is_killed_at_it(name: str, tmp_path: Path) -> None:
    """The process is killed at each request that changes something: when it was sent and has no effect yet, and when it
    has one that is not committed. The service is asked by the `check` of its connector. Where it cannot be, a person
    looks there, and enters what they see."""
    its = PLAYED[name]
    pid = tmp_path / "pid"
    services = StandIns(name, lambda: os.kill(int(pid.read_text()), signal.SIGKILL))
    async with http(services.play) as server, dev_model() as model:

        def person(wait: WaitView) -> Any:
            with urlopen(f"{server.url}/{PERSON}/{quote(f'{wait.run}:{wait.key}')}") as there:
                seen = orjson.loads(there.read())
            return "retry" if seen is None else {"action": "done", "fields": {"output": seen}}

        document = filled(name, server.url)
        connected = [id for id, block in document["blocks"].items() if block["type"].startswith("connector.")]
        workflow = Workflow(
            document, its["input"], [], {**dict.fromkeys(connected, person), **its["answers"]}, {}, (),
            endpoints_of({"dev": model.url}, None), (server.place, model.place), Outside(tmp_path),
        )  # fmt: skip
        process = Process(workflow, tmp_path, fault=lambda _: None)

        async def play() -> None:
            pid.write_text(str(os.getpid()))
            await process.play()

        while (code := await in_child(play, tmp_path)) == -signal.SIGKILL:
            pass
        assert code == DONE, (tmp_path / ERROR_FILE).read_text()
    result = Result.read(tmp_path)
    assert (result.status, result.error) == ("succeeded", None)
    writes = sorted(each for each in its["asked"] if not operation_of(each).only_reads)
    assert sorted(each for each, _, _ in services.effects) == writes
    assert services.kills == 2 * len(writes)
    unsure = {each for each in writes if not operation_of(each).idempotent and not operation_of(each).check}
    assert len(result.asked) == sum(each in unsure for each in writes)


def operation_of(name: str) -> Operation:
    service, _, id = name.partition(".")
    return SERVICES[service].operations[id]
