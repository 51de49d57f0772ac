"""Webhooks in an engine: each delivery starts one run, and of several triggers each starts what it reaches."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from compiler.compile import compile_document
from compiler.diagnostics import CompileError
from executor.blocks.types.registry import Registry
from executor.errors import (
    BadRequest,
    Conflict,
    DatabaseWriteFailed,
    DeliveryRefused,
    InputInvalid,
    NotFound,
    WebhookDisabled,
    WebhookNotReady,
)
from executor.open.engine import Engine
from executor.service.triggers import webhooks as refusals
from executor.service.triggers.declared import WebhookSpec
from executor.service.triggers.requests import Received, sign
from tests.support.clock import ManualClock
from tests.support.until import until
from tests.unit.executor.service.triggers.conftest import MONDAY, Open

HOUR = 3_600_000
Json = dict[str, Any]


def hook(**params: Any) -> Json:
    return {
        "format": "weft/1",
        "name": "orders",
        "blocks": {
            "order": {"type": "webhook", "params": params},
            "keep": {
                "type": "set",
                "params": {"value": {"amount": "<order.body.amount>", "from": "<order.query.from>"}},
            },
        },
        "edges": [{"source": "order", "target": "keep"}],
    }


def sent(body: Any = None, headers: Json | None = None, query: list[tuple[str, str]] | None = None) -> Received:
    data = orjson.dumps({"amount": 5} if body is None else body)
    return Received("POST", {"content-type": "application/json", **(headers or {})}, query or [], data)


async def signed(engine: Engine, body: Any = None, id: str = "orders:order", **headers: str) -> Received:
    key = await engine.webhooks.secret(id)
    assert key is not None
    plain = sent(body)
    at_s = engine.parts.clock.now_ms() // 1000
    stamp = {"x-weft-timestamp": str(at_s), "x-weft-signature": sign(key, plain.body, at_s)}
    return Received("POST", {**plain.headers, **stamp, **headers}, [("from", "shop")], plain.body)


async def output_of(engine: Engine, run: str) -> Any:
    async def look() -> Any:
        view = await engine.runs.view(run)
        return view if view.status == "succeeded" else None

    return (await until(look)).output


async def test_a_stored_version_brings_its_webhook(open_engine: Open) -> None:
    engine = await open_engine()
    saved = await engine.workflows.save(hook())
    (found,) = await engine.webhooks.all("orders")
    assert (found.id, found.auth, found.version, found.problem) == ("orders:order", "hmac", saved.version, None)
    assert found.url.endswith("/hooks/orders:order")
    delivered = await engine.webhooks.receive("orders:order", await signed(engine, **{"x-weft-delivery": "d-1"}))
    assert delivered.timeout_s is None and delivered.delivery == "d-1"
    assert await output_of(engine, delivered.submitted.run) == {"amount": 5, "from": "shop"}
    run = await engine.runs.view(delivered.submitted.run)
    assert run.version == saved.version
    assert run.input["delivery"] == "d-1" and "x-weft-signature" not in run.input["headers"]
    (shown,) = await engine.webhooks.deliveries("orders:order")
    assert (shown.outcome, shown.delivery, shown.run) == ("started", "d-1", run.id)
    assert (await engine.webhooks.get("orders:order")).last_run_id == run.id


async def test_a_copy_starts_nothing_and_names_the_run(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    first = await signed(engine, **{"x-weft-delivery": "d-1"})
    delivered = await engine.webhooks.receive("orders:order", first)
    renamed = Received("POST", {**first.headers, "x-weft-delivery": "d-2"}, [], first.body)
    unnamed = Received("POST", {k: v for k, v in first.headers.items() if k != "x-weft-delivery"}, [], first.body)
    clock.advance(60_000)
    anew = await signed(engine, {"amount": 6}, **{"x-weft-delivery": "d-1"})
    for copy in (first, renamed, unnamed, anew):
        with pytest.raises(Conflict) as refused:
            await engine.webhooks.receive("orders:order", copy)
        assert refused.value.code == "delivery_replayed"
        assert refused.value.extra["run"] == delivered.submitted.run
    assert len(await engine.runs.list()) == 1
    outcomes = [one.outcome for one in await engine.webhooks.deliveries("orders:order")]
    assert sorted(outcomes) == ["delivery_replayed"] * 4 + ["started"]
    other = await engine.webhooks.receive("orders:order", await signed(engine, {"amount": 6}))
    assert other.submitted.run != delivered.submitted.run


async def test_copies_at_the_same_moment_in_two_processes(open_engine: Open) -> None:
    engines = [await open_engine(), await open_engine()]
    await engines[0].workflows.save(hook())
    request = await signed(engines[0])
    replies = await asyncio.gather(
        *(engine.webhooks.receive("orders:order", request) for engine in engines * 5), return_exceptions=True
    )
    assert sum(not isinstance(reply, Conflict) for reply in replies) == 1
    assert len(await engines[1].runs.list()) == 1


async def test_what_is_refused_is_counted_and_the_last_ones_are_remembered(
    open_engine: Open, clock: ManualClock
) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    with pytest.raises(DeliveryRefused):
        await engine.webhooks.receive("orders:order", sent())
    stale = await signed(engine)
    clock.advance(301_000)
    with pytest.raises(DeliveryRefused) as refused:
        await engine.webhooks.receive("orders:order", stale)
    assert refused.value.code == "signature_expired"
    with pytest.raises(NotFound):
        await engine.webhooks.receive("orders:other", sent())
    assert await engine.store.list_deliveries("orders:order") == []
    outcomes = [one.outcome for one in await engine.webhooks.deliveries("orders:order")]
    assert outcomes == ["signature_expired", "signature_missing"]
    clock.advance(1)
    for _ in range(100):
        with pytest.raises(DeliveryRefused):
            await engine.webhooks.receive("orders:order", sent())
    assert len(await engine.webhooks.deliveries("orders:order")) == 50
    assert await engine.runs.list() == []
    counts = [(one.outcome, one.count, one.delivery) for one in await engine.webhooks.refused("orders:order")]
    assert counts == [("signature_missing", 101, None), ("signature_expired", 1, None)]


async def test_what_was_refused_is_known_after_a_restart(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    request = await signed(engine)
    run = (await engine.webhooks.receive("orders:order", request)).submitted.run
    clock.advance(1)
    for _ in range(3):
        with pytest.raises(Conflict):
            await engine.webhooks.receive("orders:order", request)
    before = await engine.webhooks.refused("orders:order")
    await engine.close()
    engine = await open_engine()
    assert await engine.webhooks.refused("orders:order") == before
    shown = [(one.outcome, one.run) for one in await engine.webhooks.deliveries("orders:order")]
    assert shown == [("delivery_replayed", run), ("started", run)]
    clock.advance(1)
    with pytest.raises(Conflict):
        await engine.webhooks.receive("orders:order", request)
    (row,) = await engine.webhooks.refused("orders:order")
    assert (row.count, row.first_at_ms, row.last_at_ms, row.run) == (4, MONDAY + 1, MONDAY + 2, run)


async def test_a_flood_writes_one_row_at_most_every_few_seconds(
    open_engine: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "WRITE_EVERY_S", 600.0)
    engine = await open_engine()
    await engine.workflows.save(hook())
    add, written = engine.store.add_refusals, []

    async def counted(rows: Any) -> None:
        written.append([(row.outcome, row.count) for row in rows])
        await add(rows)

    engine.store.add_refusals = counted
    for n in range(300):
        with pytest.raises((DeliveryRefused, NotFound)):
            await engine.webhooks.receive("orders:order" if n % 2 else f"orders:{n}", sent())
        await asyncio.sleep(0)
    assert [one.count for one in await engine.webhooks.refused("orders:order")] == [150]
    assert len(written) == 1
    await engine.close()
    assert len(written) == 2
    assert sum(count for rows in written for _, count in rows) == 150


async def test_a_count_that_cannot_be_written_is_written_later(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    add = engine.store.add_refusals

    async def full(rows: Any) -> None:
        raise DatabaseWriteFailed("the disk is full")

    engine.store.add_refusals = full
    for _ in range(2):
        with pytest.raises(DeliveryRefused):
            await engine.webhooks.receive("orders:order", sent())
        await asyncio.sleep(0.01)
    engine.store.add_refusals = add
    await engine.close()
    engine = await open_engine()
    assert [one.count for one in await engine.webhooks.refused("orders:order")] == [2]


async def test_switched_off(open_engine: Open) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    await engine.webhooks.switch("orders:order", False)
    with pytest.raises(DeliveryRefused):
        await engine.webhooks.receive("orders:order", sent())  # who proves nothing learns nothing
    with pytest.raises(WebhookDisabled):
        await engine.webhooks.receive("orders:order", await signed(engine))
    await engine.workflows.save({**hook(), "description": "the next version"})
    assert (await engine.webhooks.get("orders:order")).enabled is False
    await engine.webhooks.switch("orders:order", True)
    await engine.webhooks.receive("orders:order", await signed(engine))


@pytest.mark.parametrize("change", ["switch", "rotate", "delete"])
async def test_what_comes_while_it_is_closed_starts_nothing(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Once a client was answered that it is off, gone, or has another secret, that holds, whatever was under way."""
    engine = await open_engine()
    await engine.workflows.save(hook())
    await engine.webhooks.put("mine", WebhookSpec("orders"))
    request = await signed(engine, id="mine")
    deliver = engine.store.deliver

    async def change_and_deliver(*args: Any) -> Any:
        monkeypatch.undo()
        match change:
            case "switch":
                await engine.webhooks.switch("mine", False)
            case "rotate":
                await engine.webhooks.rotate("mine")
            case _:
                await engine.webhooks.delete("mine")
        return await deliver(*args)

    monkeypatch.setattr(engine.store, "deliver", change_and_deliver)
    with pytest.raises({"switch": WebhookDisabled, "rotate": DeliveryRefused, "delete": NotFound}[change]):
        await engine.webhooks.receive("mine", request)
    assert await engine.runs.list() == []
    assert await engine.store.list_deliveries("mine") == []


@pytest.mark.parametrize("change", ["switch", "rotate"])
async def test_deleted_while_it_is_changed(open_engine: Open, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """No client learns that it is still on, or the secret that it had."""
    engine = await open_engine()
    await engine.workflows.save(hook())
    await engine.webhooks.put("mine", WebhookSpec("orders"))
    get = engine.store.get_webhook

    async def get_and_wait(id: str) -> Any:
        row = await get(id)
        monkeypatch.undo()
        await engine.webhooks.delete(id)
        return row

    monkeypatch.setattr(engine.store, "get_webhook", get_and_wait)
    with pytest.raises(NotFound):
        await (engine.webhooks.rotate("mine") if change == "rotate" else engine.webhooks.switch("mine", False))


async def test_secrets(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    old = await engine.webhooks.secret("orders:order")
    assert old is not None and len(old) == 49 and old.startswith("whsec_")
    request = await signed(engine)
    assert await (await open_engine()).webhooks.secret("orders:order") == old, "it is derived, by every process"
    assert old.encode() not in b"".join(path.read_bytes() for path in _files(engine)), "and never stored"
    new = await engine.webhooks.rotate("orders:order")
    assert new != old == old and new == await engine.webhooks.secret("orders:order")
    with pytest.raises(DeliveryRefused):
        await engine.webhooks.receive("orders:order", request)
    await engine.webhooks.receive("orders:order", await signed(engine))

    # Made anew under the same id it has a new secret: none that was given up comes back.
    for _ in range(2):
        clock.advance(1)
        await engine.workflows.save({**_start_only(), "description": str(clock.now_ms())})
        await engine.workflows.save({**hook(), "description": str(clock.now_ms())})
        again = await engine.webhooks.secret("orders:order")
        assert again not in (old, new)
        old = again


def _files(engine: Engine) -> Any:
    from pathlib import Path

    path = Path(engine.store.path)  # type: ignore[attr-defined]
    return [file for file in path.parent.iterdir() if file.is_file()]


def _start_only() -> Json:
    return {"format": "weft/1", "name": "orders", "blocks": {"start": {"type": "start"}}, "edges": []}


async def test_a_secret_of_the_environment(open_engine: Open) -> None:
    engine = await open_engine(env={"SHOP_KEY": "a-key-of-the-shop"})
    await engine.workflows.save(hook(auth="token", secret_env="SHOP_KEY"))
    assert await engine.webhooks.secret("orders:order") is None
    with pytest.raises(Conflict):
        await engine.webhooks.rotate("orders:order")
    delivered = await engine.webhooks.receive(
        "orders:order", sent(headers={"authorization": "Bearer a-key-of-the-shop"})
    )
    assert await output_of(engine, delivered.submitted.run) == {"amount": 5, "from": None}
    bare = await open_engine()
    found = await bare.webhooks.get("orders:order")
    assert found.problem is not None and "SHOP_KEY" in found.problem
    for token in ("", "None", "a-key-of-the-shop"):
        with pytest.raises(DeliveryRefused):
            await bare.webhooks.receive("orders:order", sent(headers={"authorization": f"Bearer {token}"}))


async def test_a_body_that_does_not_fit(open_engine: Open) -> None:
    engine = await open_engine()
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
    await engine.workflows.save(hook(auth="none", body_schema=schema))
    with pytest.raises(InputInvalid) as refused:
        await engine.webhooks.receive("orders:order", sent({"amount": "much"}))
    assert refused.value.pointer == "/amount"
    assert [one["pointer"] for one in refused.value.extra["errors"]] == ["/amount"]
    unfit: list[Any] = [{}, {"other": 1}, [1], "text"]
    for body in unfit:
        with pytest.raises(InputInvalid):
            await engine.webhooks.receive("orders:order", sent(body))
    with pytest.raises(InputInvalid):
        await engine.webhooks.receive("orders:order", Received("POST", {}, [], b""))
    with pytest.raises(InputInvalid) as by_hand:
        await engine.submit("orders", input={"body": {}})  # by hand it has to fit as well
    assert by_hand.value.pointer == "/input/body" and "body_schema" in (by_hand.value.hint or "")
    await engine.webhooks.receive("orders:order", sent({"amount": 7}))


async def test_data_is_data(open_engine: Open) -> None:
    """Whatever a stranger sends, the stored workflow runs, and his text is not looked through for references."""
    engine = await open_engine(env={"KEY": "hush-hush-hush"})
    await engine.workflows.save(hook(auth="none"))
    body = {"amount": "<order.headers> ${KEY}", "workflow": "other", "document": {"blocks": {}}, "trigger": "keep"}
    delivered = await engine.webhooks.receive("orders:order", sent(body))
    run = delivered.submitted.run
    assert (await output_of(engine, run))["amount"] == "<order.headers> ${KEY}"
    assert (await engine.runs.row(run)).workflow == "orders"


async def test_one_of_the_api_gives_the_body_to_a_start_block(open_engine: Open) -> None:
    engine = await open_engine()
    document = {
        "format": "weft/1",
        "name": "greet",
        "input": {"type": "object", "properties": {"who": {"type": "string"}}, "additionalProperties": False},
        "blocks": {"start": {"type": "start"}, "say": {"type": "set", "params": {"value": "hello <start.who>"}}},
        "edges": [{"source": "start", "target": "say"}],
    }
    await engine.workflows.save(document)
    made, new = await engine.webhooks.put("greetings", WebhookSpec(workflow="greet", respond="run", timeout_s=5))
    assert new and made.origin == "api"
    delivered = await engine.webhooks.receive("greetings", await signed(engine, {"who": "Ada"}, "greetings"))
    assert delivered.timeout_s == 5
    assert await output_of(engine, delivered.submitted.run) == "hello Ada"
    with pytest.raises(InputInvalid) as refused:
        await engine.webhooks.receive("greetings", await signed(engine, {"workflow": "other"}, "greetings"))
    assert refused.value.pointer == ""
    assert not (await engine.webhooks.put("greetings", WebhookSpec(workflow="greet", enabled=False)))[1]
    await engine.webhooks.delete("greetings")
    with pytest.raises(NotFound):
        await engine.webhooks.get("greetings")


async def test_what_the_api_refuses(open_engine: Open) -> None:
    engine = await open_engine()
    await engine.workflows.save(hook())
    put = engine.webhooks.put
    for call in (put("orders:order", WebhookSpec(workflow="orders")), engine.webhooks.delete("orders:order")):
        with pytest.raises(Conflict, match="belongs to a block"):
            await call
    for id, spec in (
        ("a b", WebhookSpec(workflow="orders")),
        ("a", WebhookSpec(workflow="orders", headers=["Cookie"])),
        ("a", WebhookSpec(workflow="orders", auth="none", secret_env="KEY")),
        ("a", WebhookSpec(workflow="orders", secret_env="no name")),
    ):
        with pytest.raises(BadRequest):
            await put(id, spec)
    with pytest.raises(NotFound):
        await put("a", WebhookSpec(workflow="other"))
    with pytest.raises(CompileError):
        await put("a", WebhookSpec(workflow="orders", trigger="keep"))


async def test_a_workflow_that_cannot_start_is_not_shown_to_strangers(open_engine: Open) -> None:
    engine = await open_engine()
    await engine.workflows.save(_start_only())
    await engine.webhooks.put("mine", WebhookSpec(workflow="orders", trigger="start", auth="none"))
    await engine.workflows.save(hook())  # there is no block `start` in it
    with pytest.raises(WebhookNotReady) as refused:
        await engine.webhooks.receive("mine", sent())
    assert "start" not in refused.value.message.replace("started", "").replace("starts", "")
    assert refused.value.extra == {}


# --- several triggers in one document ---


def three_ways() -> Json:
    """Each way has a block of its own, and all meet at `meet`."""
    return {
        "format": "weft/1",
        "name": "three",
        "blocks": {
            "start": {"type": "start"},
            "clock": {"type": "schedule", "params": {"cron": "0 * * * *"}},
            "hook": {"type": "webhook", "params": {"auth": "token"}},
            "by-hand": {"type": "set", "params": {"value": "by hand"}},
            "by-clock": {"type": "set", "params": {"value": "by clock"}},
            "by-hook": {"type": "set", "params": {"value": "by hook: <hook.body.what>"}},
            "meet": {"type": "set", "params": {"value": "met"}},
        },
        "edges": [
            {"source": "start", "target": "by-hand"},
            {"source": "clock", "target": "by-clock"},
            {"source": "hook", "target": "by-hook"},
            {"source": "by-hand", "target": "meet"},
            {"source": "by-clock", "target": "meet"},
            {"source": "by-hook", "target": "meet"},
        ],
    }


async def test_each_trigger_starts_only_what_it_reaches(open_engine: Open, clock: ManualClock) -> None:
    engine = await open_engine()
    await engine.workflows.save(three_ways())
    by_hand = (await engine.submit("three")).run
    assert await output_of(engine, by_hand) == "met"
    assert (await engine.webhooks.get("three:hook")).enabled
    key = await engine.webhooks.secret("three:hook")
    request = sent({"what": "news"}, {"authorization": f"Bearer {key}"})
    by_hook = (await engine.webhooks.receive("three:hook", request)).submitted.run
    await output_of(engine, by_hook)
    clock.advance(HOUR - clock.now_ms() % HOUR)

    async def third() -> str | None:
        return (await engine.schedules.get("three:clock")).last_run_id

    by_clock = await until(third)
    assert await output_of(engine, by_clock) == "met"
    for run, way in ((by_hand, "by-hand"), (by_hook, "by-hook"), (by_clock, "by-clock")):
        trigger = {"by-hand": "start", "by-hook": "hook", "by-clock": "clock"}[way]
        assert {node.id for node in (await engine.runs.plan(run)).nodes} == {trigger, way, "meet"}
        assert {node.key: node.status for node in (await engine.runs.view(run)).nodes} == {
            trigger: "succeeded",
            way: "succeeded",
            "meet": "succeeded",
        }


# --- findings ---


def codes(document: Json) -> list[tuple[str, str, str]]:
    found = compile_document(document, Registry.load()).diagnostics
    return [(one.code, one.severity, one.pointer) for one in found]


def test_what_the_compiler_says() -> None:
    assert codes(hook()) == []
    assert codes(hook(auth="none")) == [("webhook_open", "warning", "/blocks/order/params/auth")]
    assert codes(hook(auth="maybe")) == [("param_invalid", "error", "/blocks/order/params/auth")]
    assert codes(hook(headers=["X-Fine", "Cookie"])) == [
        ("param_invalid", "error", "/blocks/order/params/headers/1"),
    ]
    assert codes(hook(timeout_s=61)) == [("param_invalid", "error", "/blocks/order/params/timeout_s")]
    assert codes(hook(body_schema={"type": "nothing"})) == [
        ("param_invalid", "error", "/blocks/order/params/body_schema"),
    ]
    document = hook(body_schema={"type": "object", "properties": {"total": {}}, "additionalProperties": False})
    assert ("reference_unknown_field", "warning") in {found[:2] for found in codes(document)}
    document = hook()
    document["blocks"]["keep"]["params"] = {"value": "<order.bodi>"}
    assert ("reference_unknown_field", "warning") in {found[:2] for found in codes(document)}
