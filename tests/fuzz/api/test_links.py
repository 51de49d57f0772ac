"""The links of openapi.json followed one by one with requests such as people make: what one answer holds is what the
next request needs. Then a run from its start to its end and again. Every answer is held against the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from schemathesis import BaseSchema, Config, Response

from server.api import TABLE
from tests.fuzz.api.conftest import well
from tests.fuzz.api.world import ASKING, BEARER, ENDING, TIMEOUT_S, World
from tests.support.server import SyncServerProcess

pytestmark = pytest.mark.proof

Request = dict[str, Any]
# A link is written as (from where, where to).
LINKS = [
    (f"{spec.method} {spec.path}", f"{link.method} {link.path}")
    for spec in TABLE
    if spec.documented
    for link in spec.links
]
DAILY = {"workflow": "ending", "version": 1, "cron": "0 9 * * MON-FRI"}
HOOK = {"workflow": "ending", "version": 1, "auth": "token"}
PENDING = {"status": "pending", "kind": "approval"}


def read_schema(server: SyncServerProcess) -> BaseSchema:
    # Streams are read to their end.
    config = Config.from_dict({"max-stream-events": 10_000, "request-timeout": TIMEOUT_S})
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json", config=config)


@pytest.fixture(scope="module")
def api(server: SyncServerProcess) -> Iterator[Api]:
    """For all of these: what they change they have made themselves."""
    with httpx.Client(base_url=server.url, headers=BEARER, timeout=TIMEOUT_S) as client:
        yield Api(World(server), client)
    well(server)


class Api:
    """Requests by label, such as `GET /api/runs/{id}`."""

    def __init__(self, world: World, client: httpx.Client) -> None:
        self._schema = read_schema(world.server)
        self._client = client
        self.world = world

    def ask(self, label: str, **parts: Any) -> Response:
        """Fails when the answer is not as documented. `parts`: path_parameters, query, headers, body."""
        operation = self._schema.find_operation_by_label(label)
        assert operation is not None, label
        headers = {**BEARER, **parts.pop("headers", {})}
        if label.startswith(("POST", "PUT", "DELETE")):
            parts.setdefault("body", {})
        case = operation.Case(**parts, headers=headers, media_type="application/json")
        return case.call_and_validate()

    def follow(self, label: str, answer: Response, to: str, **parts: Any) -> Response:
        """Ask what a link of the answer leads to, with what the answer holds and `parts` beside it."""
        operation, target = (self._schema.find_operation_by_label(one) for one in (label, to))
        assert operation is not None and target is not None
        responses = operation.definition.raw["responses"]
        link = responses[str(answer.status_code)]["links"][target.definition.raw["operationId"]]
        names = {p["name"]: p["in"] for p in target.definition.raw.get("parameters", [])}
        for name, expression in link["parameters"].items():
            value = _value(answer.json(), expression)
            parts.setdefault("path_parameters" if names[name] == "path" else "query", {})[name] = value
        return self.ask(to, **parts)

    def until_ended(self, run: str) -> None:
        """Reads the run's stream of events to its end."""
        with self._client.stream("GET", f"/api/runs/{run}/events", headers={"Accept": "text/event-stream"}) as stream:
            for _ in stream.iter_bytes():
                pass


def first(api: Api, label: str, to: str) -> Request:
    """A request to the operation `label` that is taken, such that what `to` does makes sense afterwards."""
    again = to == "POST /api/runs/{id}/rerun"  # which takes runs that have ended
    document, (ended, _, waiting, *_) = ENDING if again else ASKING, api.world.known["/api/runs/", "id"]
    match label:
        case "POST /api/workflows":
            return {"body": ENDING}
        case "POST /api/drafts":
            return {"body": {"document": document}}
        case "POST /api/drafts/{id}/run":
            return {"path_parameters": {"id": api.ask("POST /api/drafts", body={"document": document}).json()["id"]}}
        case "POST /api/workflows/{name}/runs":
            return {"path_parameters": {"name": document["name"]}, "query": {"wait": 60}}
        case "POST /api/runs":
            return {"body": {"document": document}, "query": {"wait": 60}}
        case "POST /api/runs/{id}/rerun":
            return {"path_parameters": {"id": ended if again else _cancelled(api)}}
        case "POST /api/runs/{id}/fork":
            return {"path_parameters": {"id": ended if again else waiting}, "body": {"seq": 1}}
        case "POST /api/runs/{id}/nodes/{key}/retry":
            run, key = (ended, "hello") if again else (_cancelled(api), "ask")
            return {"path_parameters": {"id": run, "key": key}}
        case "GET /api/waits":
            run = api.ask("POST /api/runs", body={"document": ASKING}, query={"wait": 60}).json()["run"]
            return {"query": {**PENDING, "run": run}}
        case "PUT /api/schedules/{id}":
            return {"path_parameters": {"id": "weekdays"}, "body": DAILY}
        case "PUT /api/webhooks/{id}":
            return {"path_parameters": {"id": "token"}, "body": HOOK}
        case "POST /api/upkeep/gc":
            return {"body": {"dry_run": True}}
    raise AssertionError(f"{label} has links: say here which request to it is taken")


def beside(to: str, answer: Response) -> Request:
    """What the operation wants that no link can give."""
    match to:
        case "PUT /api/drafts/{id}":
            return {"headers": {"If-Match": '"1"'}, "body": {"document": ENDING}}
        case "POST /api/drafts/{id}/versions":
            return {"body": {"name": "stored-from-a-draft"}}  # its own name is that of another workflow
        case "POST /api/runs/{id}/signals/{name}":
            return {"path_parameters": {"name": "go"}}
        case "GET /api/runs/{id}/events":
            return {"headers": {"Accept": "application/json"}}  # the stream of an open run would not end
        case "POST /hooks/{id}":
            return {"headers": {"Authorization": f"Bearer {answer.json()['secret']}"}}
    return {}


@pytest.mark.parametrize(("label", "to"), LINKS)
def test_each_link_leads_on(api: Api, label: str, to: str) -> None:
    answer = api.ask(label, **first(api, label, to))
    assert answer.status_code < 300, answer.text
    if to == "POST /api/runs/{id}/rerun":
        api.until_ended(answer.json()["run"])
    led = api.follow(label, answer, to, **beside(to, answer))
    assert led.status_code < 300, led.text


def test_a_run_from_start_to_end_and_again(api: Api) -> None:
    """Submit, events, what it asks, the answer, a signal, cancel, its whole stream, run again."""
    submit = "POST /api/runs"
    key = {"Idempotency-Key": "order-4711"}
    run = api.ask(submit, headers=key, body={"document": ASKING})
    assert run.status_code == 202
    same = api.ask(submit, headers=key, body={"document": ASKING}, query={"wait": 60}).json()
    assert (same["run"], same["status"]) == (run.json()["run"], "waiting")

    events = api.follow(submit, run, "GET /api/runs/{id}/events", headers={"Accept": "application/json"}).json()
    assert [event["seq"] for event in events["events"]] == list(range(1, len(events["events"]) + 1))

    asked = api.follow(submit, run, "GET /api/waits", query=PENDING)
    (wait,) = asked.json()["waits"]
    assert api.follow("GET /api/waits", asked, "GET /api/runs/{id}/waits/{key}").json()["id"] == wait["id"]
    token = {"token": wait["link"].rpartition("/")[2]}
    assert api.ask("GET /api/resume/{token}", path_parameters=token).json()["status"] == "pending"
    answer = {"action": "yes", "fields": {"n": 7}, "by": "Ada"}
    assert api.ask("POST /api/resume/{token}", path_parameters=token, body=answer).json()["answered_by"] == "Ada"
    late = api.ask("POST /resume/{token}", path_parameters=token, headers={"Accept": "application/json"}, body=answer)
    assert (late.status_code, late.json()["code"]) == (409, "already_answered")

    signal = {"path_parameters": {"name": "go"}, "body": {"payload": 1}}
    assert api.follow(submit, run, "POST /api/runs/{id}/signals/{name}", **signal).status_code == 202
    assert api.follow(submit, run, "POST /api/runs/{id}/cancel", body={"reason": "enough"}).status_code == 202
    stream = api.follow(submit, run, "GET /api/runs/{id}/events", headers={"Accept": "text/event-stream"}).text
    assert "event: node.succeeded" in stream and "event: run.finished" in stream
    assert api.follow(submit, run, "GET /api/runs/{id}").json()["status"] == "cancelled"
    assert api.follow(submit, run, "POST /api/runs/{id}/cancel").status_code == 202  # as the first time
    assert api.follow(submit, run, "POST /api/runs/{id}/rerun").status_code == 202


def _cancelled(api: Api) -> str:
    run = api.ask("POST /api/runs", body={"document": ASKING}, query={"wait": 60}).json()["run"]
    assert api.ask("POST /api/runs/{id}/cancel", path_parameters={"id": run}).status_code == 202
    api.until_ended(run)
    return str(run)


def _value(answer: Any, expression: str) -> Any:
    """What `$response.body#/waits/0/id` says, of the kind of runtime expression that the document has."""
    where, _, pointer = expression.partition("#/")
    assert where == "$response.body"
    for step in pointer.split("/"):
        answer = answer[int(step)] if isinstance(answer, list) else answer[step]
    return answer
