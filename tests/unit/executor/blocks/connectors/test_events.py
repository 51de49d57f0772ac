"""Events of the connectors that come with weft, from answers as their services describe them."""

from __future__ import annotations

from typing import Any

import pytest

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.stored import connectors
from executor.blocks.connectors.validate import checked
from executor.errors import BadRequest
from executor.open.testing.engines import ManualClock, engine
from executor.open.testing.scripted_http import HttpAnswer, ScriptedHttp
from tests.support.polled import Shop
from tests.support.until import until

EVENTS = {block.connector.service: block for block in connectors() if isinstance(block, EventBlock)}
OPERATIONS = {block.connector.service: block for block in connectors() if isinstance(block, ConnectorBlock)}
SINCE = f"after%3A{1_800_000_000}"

S3 = (
    '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<IsTruncated>{more}</IsTruncated>{token}{objects}</ListBucketResult>"
)


def listing(*keys: str, token: str = "") -> HttpAnswer:
    objects = "".join(f'<Contents><Key>{key}</Key><ETag>"{key}"</ETag></Contents>' for key in keys)
    token = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    body = S3.format(more="true" if token else "false", token=token, objects=objects)
    return HttpAnswer(headers={"Content-Type": "application/xml"}, body=body.encode())


def messages(*stamps: str) -> dict[str, Any]:
    return {"ok": True, "messages": [{"type": "message", "text": f"at {ts}", "ts": ts} for ts in stamps]}


CASES: list[tuple[str, dict[str, Any], list[Any], list[Any], list[str], str]] = [
    # service, params, answers to the first poll, to the second, ids of the events, what is in the last request
    ("github", {"owner": "a", "repo": "b"},
     [[{"id": 1, "created_at": "2027-01-01T00:00:00Z"}]],
     [[{"id": 3, "created_at": "2027-01-03T00:00:00Z", "pull_request": {}},
       {"id": 2, "created_at": "2027-01-02T00:00:00Z"}, {"id": 1, "created_at": "2027-01-01T00:00:00Z"}]],
     ["2"], "state=all"),
    ("slack", {"channel": "C1"}, [messages("1.000002", "1.000001")], [messages("1.000004", "1.000003")],
     ["1.000003", "1.000004"], "oldest=1.000002"),
    ("gmail", {"search": "is:unread"}, [{"messages": [{"id": "a"}]}], [{"messages": [{"id": "b"}, {"id": "a"}]}],
     ["b"], SINCE),
    ("google_sheets", {"spreadsheet": "s", "range": "A:B"}, [{"values": [["Name"]]}],
     [{"values": [["Name"], ["Ada"], ["Bob"]]}], ["#2", "#3"], "A%3AB"),
    ("notion", {"database": "d"}, [{"results": [{"id": "p", "created_time": "2027-01-01T00:00:00.000Z"}]}],
     [{"results": [{"id": "q", "created_time": "2027-01-01T00:00:00.000Z"},
                   {"id": "p", "created_time": "2027-01-01T00:00:00.000Z"}]}], ["q"], "query"),
    ("linear", {}, [{"data": {"issues": {"nodes": [{"id": "i", "createdAt": "2027-01-01T00:00:00.000Z"}]}}}],
     [{"data": {"issues": {"nodes": [{"id": "k", "createdAt": "2027-01-02T00:00:00.000Z"}]}}}], ["k"], "graphql"),
    ("discord", {"channel": "1"}, [[{"id": "5", "timestamp": "2027-01-01T00:00:00+00:00"}]],
     [[{"id": "6", "timestamp": "2027-01-02T00:00:00+00:00"}, {"id": "5", "timestamp": "2027-01-01T00:00:00+00:00"}]],
     ["6"], "limit=100"),
    ("telegram", {}, [{"ok": True, "result": [{"update_id": 7}]}, {"ok": True, "result": [{"update_id": 7}]}],
     [{"ok": True, "result": [{"update_id": 7}, {"update_id": 8}]}, {"ok": True, "result": [{"update_id": 8}]}],
     ["8"], "offset=8"),
    ("s3", {"bucket": "b"}, [listing("a", token="t"), listing("c")], [listing("a", "b", token="t"), listing("c")],
     ['b "b"'], "continuation-token=t"),
]  # fmt: skip
# Those whose answers need nothing but a list: service and event.
PLAIN = [
    (name, event)
    for name, block in EVENTS.items()
    if name not in {case[0] for case in CASES}
    for event in block.connector.events
]


def test_each_shipped_document_is_known_to_have_events_or_not() -> None:
    assert {name for name, block in OPERATIONS.items() if block.connector.events} == set(EVENTS)
    assert {case[0] for case in CASES} == {"discord", "github", "gmail", "google_sheets", "linear", "notion", "s3",
                                           "slack", "telegram"}  # fmt: skip
    assert {service for service, _ in PLAIN} == set(EVENTS) - {case[0] for case in CASES}


def put(within: dict[str, Any], pointer: str, value: Any) -> None:
    *steps, last = pointer.split("/")[1:]
    for step in steps:
        within = within.setdefault(step, {})
    within[last] = value


def page_of(service: str, event: str, *numbers: int) -> Any:
    """Return an answer with these items as its last page: each has what the document of the service reads."""
    connector = EVENTS[service].connector
    its = connector.events[event]
    items = []
    for number in numbers:
        item: dict[str, Any] = {}
        for pointer in (its.id,) if isinstance(its.id, str) else its.id:
            put(item, pointer, f"id-{number}")
        for pointer, values in its.only.items():
            put(item, pointer, values[0])
        if its.time is not None:
            put(item, its.time.at, f"2027-01-0{number}T00:00:00Z" if its.time.at != "/created" else number)
        items.append(item)
    pages = connector.operations[its.operation].pages
    assert pages is not None
    answer: dict[str, Any] = {}
    if not pages.items:
        return items
    put(answer, pages.items, items)
    return answer


@pytest.mark.parametrize(("service", "event"), PLAIN)
async def test_new_items_of_a_list(service: str, event: str) -> None:
    block = EVENTS[service]
    operation = block.connector.operations[block.connector.events[event].operation]
    fields = {name: operation.fields[name] for name in operation.required}
    params = {name: {"integer": 1, "array": ["x"]}.get(its.get("type"), "x") for name, its in fields.items()}
    oldest = block.connector.events[event].order == "oldest"
    first, second = page_of(service, event, 1), page_of(service, event, *((1, 2) if oldest else (2, 1)))
    http = ScriptedHttp()
    # A list that grows at its end is read again until there is nothing further in it.
    http.on(f"{operation.method} https://**", *([first, first] if oldest else [first]), second, second, second)
    params = {"event": event, "credential": "${TOKEN}", **params}
    document = {
        "format": "weft/1", "name": "events", "blocks": {"e": {"type": f"event.{service}", "params": params}},
    }  # fmt: skip
    clock = ManualClock()
    async with engine(http=http, env={"TOKEN": "t-12345678"}, secrets=["TOKEN"], clock=clock) as weft:
        await weft.workflows.save(document)
        await until(lambda: http.requests and not weft.schedules.scheduler.polls.under_way)
        assert (await weft.schedules.get("events:e")).error is None and await weft.runs.list() == []
        asked = len(http.requests)
        clock.set(clock.now_ms() + 61_000)
        await until(lambda: len(http.requests) > asked and not weft.schedules.scheduler.polls.under_way)
        assert (await weft.schedules.get("events:e")).error is None
        await until(lambda: _count(weft, 1))


@pytest.mark.parametrize(
    ("service", "params", "first", "second", "ids", "asked"), CASES, ids=[case[0] for case in CASES]
)
async def test_new_items_of_a_service(
    service: str, params: dict[str, Any], first: list[Any], second: list[Any], ids: list[str], asked: str
) -> None:
    http = ScriptedHttp()
    for method in ("GET", "POST"):
        http.on(f"{method} https://**", *first, *second)
    document = {
        "format": "weft/1",
        "name": "events",
        "blocks": {"e": {"type": f"event.{service}", "params": {"credential": "${TOKEN}", **params}}},
    }
    env = {"TOKEN": "AKIDEXAMPLE:0123456789"}
    clock = ManualClock()
    async with engine(http=http, env=env, secrets=list(env), clock=clock) as weft:
        await weft.workflows.save(document)
        await until(lambda: len(http.requests) >= len(first) and not weft.schedules.scheduler.polls.under_way)
        assert (await weft.schedules.get("events:e")).error is None and await weft.runs.list() == []
        clock.set(clock.now_ms() + 61_000)
        await until(lambda: len(http.requests) >= len(first) + len(second))
        await until(lambda: not weft.schedules.scheduler.polls.under_way)
        assert (await weft.schedules.get("events:e")).error is None
        await until(lambda: _count(weft, len(ids)))
        runs = [await weft.runs.view(row.id) for row in await weft.runs.list()]
        assert sorted(run.output["id"] for run in runs) == ids
        assert asked in http.requests[-1].url


async def _count(weft: Any, count: int) -> bool:
    return bool((await weft.runs.count())["succeeded"] == count)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"operation": "nothing"}, "/events/new_order/operation"),
        ({"set": {"colour": 1}}, "/events/new_order/set/colour"),
        ({"time": {"at": "/made", "field": "since"}}, "/events/new_order/time/field"),
        ({"operation": "list_after", "items": None}, "/events/new_order"),
        ({"order": "random"}, "/events/new_order/order"),
    ],
)
def test_what_is_wrong_with_an_event(change: dict[str, Any], pointer: str) -> None:
    shop = Shop()
    shop.place = "127.0.0.1:1"
    document = shop.document()
    event = {**document["events"]["new_order"], **change}
    document["events"]["new_order"] = {name: value for name, value in event.items() if value is not None}
    with pytest.raises(BadRequest) as refused:
        checked(document)
    assert pointer in [error["pointer"] for error in refused.value.extra["errors"]]
