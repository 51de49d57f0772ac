"""The inbox over HTTP, questions that are taken back, signals that are listed, and how often links may be tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.http.rates import ANSWERS, MISSES, Buckets, Rates
from tests.support.runs import ended


def form(**params: Any) -> dict[str, Any]:
    fields = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    return {
        "format": "weft/1",
        "name": "sizing",
        "blocks": {
            "start": {"type": "start"},
            "size": {"type": "form", "name": "Size", "params": {"title": "How big?", "fields": fields, **params}},
            "oops": {"type": "set", "params": {"value": "<size.error>"}},
        },
        "edges": [{"source": "start", "target": "size"}, {"source": "size", "handle": "error", "target": "oops"}],
    }


async def test_the_inbox_says_what_a_person_wants_to_know(
    client: httpx.AsyncClient, started: Callable[..., Any], asking: dict[str, Any]
) -> None:
    one, two = await started(form(expires_in_s=3600)), await started(asking)
    inbox = (await client.get("/api/waits")).json()
    assert [wait["run"] for wait in inbox["waits"]] == [one["run"], two["run"]]
    assert (inbox["next"], inbox["counts"]["pending"], inbox["counts"]["answered"]) == (None, 2, 0)
    wait = inbox["waits"][0]
    assert {name: wait[name] for name in ("workflow", "run_status", "kind", "label", "key", "title")} == {
        "workflow": "sizing",
        "run_status": "waiting",
        "kind": "form",
        "label": "Size",
        "key": "size",
        "title": "How big?",
    }
    assert wait["age_s"] >= 0 and 0 <= wait["opened_at_ms"] + 3_600_000 - wait["expires_at_ms"] < 60_000
    assert "/resume/" in wait["link"]

    queries: list[tuple[dict[str, Any], list[Any]]] = [
        ({"kind": "form"}, [one]),
        ({"workflow": "asking"}, [two]),
        ({"run": two["run"]}, [two]),
        ({"kind": "form", "workflow": "asking"}, []),
        ({"status": "answered"}, []),
        ({"status": "all", "limit": 1}, [one]),
    ]
    for query, expected in queries:
        found = (await client.get("/api/waits", params=query)).json()["waits"]
        assert [wait["run"] for wait in found] == [run["run"] for run in expected], query
    first = (await client.get("/api/waits?limit=1")).json()
    second = (await client.get("/api/waits", params={"limit": 1, "before": first["next"]})).json()
    third = (await client.get("/api/waits", params={"limit": 1, "before": second["next"]})).json()
    assert [page["waits"][0]["run"] for page in (first, second)] == [one["run"], two["run"]]
    assert (third["waits"], third["next"]) == ([], None)
    assert (await client.get("/api/waits?kind=dream")).status_code == 400


async def test_a_form_page_has_one_button_with_its_own_words(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    run = await started(form(submit="Order <now>", text="Mind the door."))
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    page = (await client.get(wait["link"], headers={"accept": "text/html"})).text
    assert page.count("<button") == 1 and ">Order &lt;now&gt;</button>" in page and "Mind the door." in page
    assert "<script" not in page
    assert (await client.post(wait["link"], data={"field.size": "big"})).status_code == 422
    assert (await client.post(wait["link"], data={"field.size": "4", "by": "Ada"})).status_code == 200
    view = await ended(engine, run["run"])
    (output,) = [node.output for node in view.nodes if node.key == "size"]
    assert (output["size"], output["answered_by"]) == (4, "Ada")
    assert set(output) == {"size", "answered_by", "answered_at"}


@pytest.mark.parametrize("by_key", [True, False])
async def test_a_question_can_be_withdrawn(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine, by_key: bool
) -> None:
    run = await started(form())
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    path = f"/api/runs/{run['run']}/waits/{'size' if by_key else wait['id']}"
    assert (await client.get(path)).json()["id"] == wait["id"]
    done = await client.request("DELETE", path, json={"by": "Ada", "reason": "asked twice"})
    assert (done.status_code, done.json()["status"]) == (200, "cancelled")
    view = await ended(engine, run["run"])
    assert view.status == "succeeded", "the error handle was wired"
    assert (view.output["code"], view.output["message"]) == (
        "wait_cancelled",
        "the wait was cancelled by Ada: asked twice",
    )
    again = await client.request("DELETE", path)
    assert (again.status_code, again.json()["code"]) == (409, "wait_cancelled")
    assert (await client.get(path)).json()["status"] == "cancelled"
    late = await client.post(wait["link"], json={"fields": {"size": 1}})
    assert (late.status_code, late.json()["code"]) == (409, "wait_cancelled")
    page = await client.post(wait["link"], data={"field.size": "1"})
    assert page.status_code == 409 and "withdrawn" in page.text


async def test_a_question_that_was_not_asked_cannot_be_withdrawn(
    client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    document = form()
    document["blocks"]["size"] = {"type": "signal", "params": {"name": "go"}}
    run = await started(document)
    refused = await client.request("DELETE", f"/api/runs/{run['run']}/waits/size")
    assert (refused.status_code, refused.json()["code"]) == (409, "wait_not_cancellable")
    unknown = await client.request("DELETE", f"/api/runs/{run['run']}/waits/oops")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "wait_not_found")
    nowhere = await client.request("DELETE", "/api/runs/none/waits/size")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "run_not_found")
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    assert wait["link"] is None, "no link answers a signal"


async def test_the_name_of_a_signal_may_be_any_text(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    document = form()
    document["blocks"]["size"] = {"type": "signal", "params": {"name": "order/paid ?#%2F é"}}
    run = (await started(document))["run"]
    name = quote("order/paid ?#%2F é", safe="")
    sent = await client.post(f"/api/runs/{run}/signals/{name}", json={"payload": 5})
    assert (sent.status_code, sent.json()["name"]) == (202, "order/paid ?#%2F é")
    assert (await ended(engine, run)).status == "succeeded"


async def test_signals_are_listed_and_a_key_counts_once(client: httpx.AsyncClient, started: Callable[..., Any]) -> None:
    document = form()
    document["blocks"]["size"] = {"type": "form", "params": {"fields": {"properties": {"a": {}}}}}
    run = (await started(document))["run"]
    first = await client.post(
        f"/api/runs/{run}/signals/paid", json={"payload": {"eur": 5}, "correlation": "o-1", "dedupe_key": "k"}
    )
    again = await client.post(f"/api/runs/{run}/signals/paid", json={"payload": 6}, headers={"idempotency-key": "k"})
    other = await client.post(f"/api/runs/{run}/signals/sent", json={"by": "shop"})
    assert (await client.post(f"/api/runs/{run}/signals/", json={})).status_code == 400
    assert [(r.status_code, r.json()["seq"], r.json()["new"]) for r in (first, again, other)] == [
        (202, 1, True),
        (200, 1, False),
        (202, 2, True),
    ]

    async def listed(**query: Any) -> list[int]:
        found = await client.get(f"/api/runs/{run}/signals", params=query)
        assert found.status_code == 200, found.text
        return [signal["seq"] for signal in found.json()["signals"]]

    assert await listed() == [1, 2]
    assert await listed(name="paid") == [1] and await listed(correlation="o-1") == [1]
    assert await listed(name="paid", correlation="o-2") == []
    everything = (await client.get(f"/api/runs/{run}/signals")).json()["signals"]
    assert await listed(received_after=everything[-1]["received_at_ms"] + 1) == []
    assert await listed(received_after=everything[0]["received_at_ms"], limit=1) == [1]
    assert (everything[0]["payload"], everything[0]["dedupe_key"], everything[0]["taken_by"]) == ({"eur": 5}, "k", None)
    assert (await client.get("/api/runs/none/signals")).status_code == 404


async def test_unknown_links_can_be_tried_so_often(
    client: httpx.AsyncClient, app: Starlette, started: Callable[..., Any], asking: dict[str, Any]
) -> None:
    app.state.auth.rates = Rates(lambda: 0.0)  # time stands still: however slow this is, no try comes back
    run = await started(asking)
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    paths = ["/resume/{}", "/api/resume/{}", "/callbacks/{}"]
    for n in range(MISSES):
        path = paths[n % 3].format("x" * 43)
        tried = await (client.post(path, json={}) if n % 3 == 2 else client.get(path))
        assert tried.status_code == 404, n
    for path in paths:
        refused = await client.post(path.format("x" * 43), json={})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_tries")
        assert refused.headers["retry-after"] == "2"
    assert (await client.get(wait["link"])).status_code == 200, "a link that exists works all the same"
    assert (await client.post(wait["link"], json={"action": "approve", "fields": {"amount": 1}})).status_code == 200


async def test_one_link_can_be_answered_so_often(
    client: httpx.AsyncClient, app: Starlette, started: Callable[..., Any], asking: dict[str, Any]
) -> None:
    app.state.auth.rates = Rates(lambda: 0.0)
    run, other = await started(asking), await started(asking)
    links = [(await client.get(f"/api/waits?run={one['run']}")).json()["waits"][0]["link"] for one in (run, other)]
    wrong = {"action": "approve", "fields": {"amount": "many"}}
    for _ in range(ANSWERS):
        assert (await client.post(links[0], json=wrong)).status_code == 422
    assert (await client.post(links[0], json=wrong)).status_code == 429
    assert (await client.post(links[0], data={"action": "approve"})).status_code == 429
    assert (await client.get(links[0])).status_code == 200
    assert (await client.post(links[1], json=wrong)).status_code == 422, "the other link is another matter"


def test_tries_come_back_with_time() -> None:
    now = 0.0
    buckets = Buckets(2, 0.5, lambda: now)
    assert [buckets.spend("a"), buckets.spend("a"), buckets.spend("b")] == [0, 0, 0]
    assert buckets.spend("a") == 2.0
    now = 1.0
    assert buckets.spend("a") == 1.0
    now = 2.0
    assert buckets.spend("a") == 0 and buckets.spend("a") == 2.0
    now = 1_000.0
    assert [buckets.spend("a") for _ in range(3)] == [0, 0, 2.0]
