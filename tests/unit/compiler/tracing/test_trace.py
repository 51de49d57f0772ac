"""What a traced function becomes: blocks, references, and which block waits for which."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from compiler.builder.errors import DefinitionError
from compiler.compile import compile_document
from compiler.tracing.blocks import http
from compiler.tracing.calls import approve, continue_as_new, sleep
from compiler.tracing.ways import attempt, each, otherwise, when
from compiler.tracing.workflow import FunctionWorkflow, call, workflow
from executor.blocks.durable.opened import callback
from executor.blocks.durable.together import gather
from executor.blocks.durable.waits import form, signal, until
from executor.blocks.types.python import Python
from executor.blocks.types.registry import Registry
from tests.unit.compiler.tracing.shop import Item, load, load_later, mail, pay, price, total

STEPS = Python({one.name: one for one in (load, load_later, mail, pay, price, total)})


def traced(flow: FunctionWorkflow[Any, Any]) -> dict[str, Any]:
    """The document, which compiles without a finding."""
    document = flow.document()
    assert compile_document(document, Registry.load([STEPS])).diagnostics == []
    return document


def edges(document: dict[str, Any]) -> list[str]:
    return [f"{edge['source']}:{edge['handle']} {edge['target']}" if "handle" in edge else
            f"{edge['source']} {edge['target']}" for edge in document["edges"]]  # fmt: skip


def test_calls_are_blocks_and_uses_are_edges_and_references() -> None:
    @workflow
    async def offer(order: str, factor: int = 2) -> Any:
        """Prices an order.

        Not this.
        """
        found = await load(order)
        one = await price(found.items[0], factor)
        return await total([one, 1, {"of": one}], note=f"for {found.customer}")

    document = traced(offer)

    assert (document["name"], document["description"]) == ("offer", "Prices an order.")
    assert document["input"]["required"] == ["order"]
    assert document["input"]["properties"]["factor"]["default"] == 2
    blocks = document["blocks"]
    assert blocks["start"]["params"]["fields"] == [
        {"name": "order", "type": "string", "required": True},
        {"name": "factor", "type": "integer", "default": 2},
    ]
    assert blocks["load"]["params"] == {"function": f"{load.__module__}.load", "arguments": {"order": "<start.order>"}}
    assert blocks["load"]["policy"] == {"retry": {"max_attempts": 3}, "on_lost": "retry"}
    assert blocks["load"]["output_schema"]["properties"]["items"]["items"]["properties"]["price"] == {"type": "number"}
    assert blocks["price"]["params"]["arguments"] == {"item": "<load.items[0]>", "factor": "<start.factor>"}
    assert blocks["total"]["params"]["arguments"] == {
        "prices": ["<price>", 1, {"of": "<price>"}],
        "note": "for <load.customer>",
    }
    assert edges(document) == ["start load", "load price", "price total"]


def test_a_second_trace_gives_the_same_document() -> None:
    async def offer(order: str) -> Any:
        return [(await load(order)).customer, await load(order), await mail("again")]

    document = traced(workflow(offer))
    assert document == workflow(offer).document()
    assert [*document["blocks"]] == ["start", "load", "load-2", "mail", "result"]


def test_await_is_order_and_gather_is_side_by_side() -> None:
    async def told(text: str) -> Any:
        await mail(text)
        return await mail("again")

    @workflow
    async def both(order: str) -> Any:
        await pay(1)
        found, words = await gather(load(order), told(order))
        return await total([found.items[0].price], f"told {words}")

    document = traced(both)
    assert edges(document) == [
        "start pay", "pay load", "pay mail", "mail mail-2", "load total", "mail-2 total",
    ]  # fmt: skip
    assert document["blocks"]["total"]["params"]["arguments"] == {
        "prices": ["<load.items[0].price>"],
        "note": "told <mail-2>",
    }


def test_gather_with_items_is_each() -> None:
    @workflow
    async def prices(order: str) -> Any:
        found = await load(order)
        known = await gather(["a", "b"], mail)
        return [await gather(found.items, price, at_most=3), *known]

    document = traced(prices)
    assert document["blocks"]["each-price"]["params"]["concurrency"] == 3
    assert edges(document)[1:5] == ["load mail", "load mail-2", "mail each-price", "mail-2 each-price"]


def test_a_branch_of_gather_without_calls_is_no_edge() -> None:
    async def nothing() -> int:
        return 1

    @workflow
    async def both() -> None:
        await mail("a")
        await gather(nothing(), mail("b"))
        await mail("c")
        assert await gather(nothing(), nothing()) == (1, 1)
        await mail("d")

    assert edges(traced(both)) == ["start mail", "mail mail-2", "mail-2 mail-3", "mail-3 mail-4"]


def test_waits_are_the_blocks_of_these_names() -> None:
    @workflow
    async def waits(order: str, at: datetime) -> Any:
        await sleep(60)
        await until(datetime(2030, 1, 1, tzinfo=UTC))
        await until(at)
        paid = await signal("paid", order, type=Item, days=1)
        asked = await form("Address?", type=Item, minutes=1)
        done: Any = await callback(send={"url": f"https://example.org/{order}"}, type=Item)
        return [paid.price, asked.name, done.name]

    document = traced(waits)
    params = {name: block.get("params") for name, block in document["blocks"].items()}
    assert params["sleep"] == {"seconds": 60}
    assert params["until"] == {"until": "2030-01-01T00:00:00+00:00"}
    assert params["until-2"] == {"until": "<start.at>"}
    assert params["signal"] == {"name": "paid", "correlation": "<start.order>", "expires_in_s": 86_400}
    assert (params["form"]["title"], params["form"]["expires_in_s"]) == ("Address?", 60)
    assert params["result"] == {"value": ["<signal.payload.price>", "<form.name>", "<callback.body.name>"]}
    assert params["callback"]["send"] == {"url": "https://example.org/<start.order>"}
    assert len(edges(document)) == 7


def test_each_is_a_parallel_whose_value_is_the_list() -> None:
    @workflow
    async def sums(order: str) -> Any:
        found = await load(order)
        return await total(await each(found.items, price, concurrency=5), note="x")

    document = traced(sums)
    blocks = document["blocks"]
    assert blocks["each-price"] == {
        "type": "parallel",
        "params": {"mode": "each", "items": "<load.items>", "results": "value", "concurrency": 5},
    }
    assert blocks["price"]["parent"] == "each-price"
    assert blocks["price"]["params"]["arguments"] == {"item": "<each-price.item>"}
    assert blocks["total"]["params"]["arguments"] == {"prices": "<each-price.results>", "note": "x"}
    assert edges(document) == ["start load", "load each-price", "each-price:body price", "each-price total"]


def test_a_body_that_returns_an_object_ends_with_it() -> None:
    @workflow
    async def rows(order: str) -> Any:
        found = await load(order)
        other = await mail(found.customer)

        async def row(item: Any) -> Any:
            await gather(pay(item.price), mail("x"))
            return {"name": item.name, "price": await price(item), "mail": other}

        return await each(found.items, row, one_at_a_time=True)

    document = traced(rows)
    assert document["blocks"]["each-row"]["type"] == "loop"
    assert document["blocks"]["value"]["params"]["value"] == {
        "name": "<each-row.item.name>",
        "price": "<price>",
        "mail": "<mail>",
    }
    assert edges(document) == [
        "start load", "load mail", "mail each-row", "each-row:body pay", "each-row:body mail-2", "pay price",
        "mail-2 price", "price value", "each-row result",
    ]  # fmt: skip


def test_when_chooses_a_value() -> None:
    @workflow
    async def choose(order: str, limit: float) -> Any:
        found = await load(order)
        cost = await price(found.items[0])
        words = await when((cost > limit) & ~(found.customer == "ada"), lambda: pay(cost), lambda: f"free for {order}")
        return await mail(words)

    document = traced(choose)
    blocks = document["blocks"]
    assert blocks["when"]["params"]["cases"] == [
        {"id": "then", "when": '(<price> > <start.limit>) && (!(<load.customer> === "ada"))'},
        {"id": "else"},
    ]
    assert blocks["when-value"] == {"type": "set", "params": {"first": ["<pay ?? null>", "<value ?? null>"]}}
    assert edges(document) == [
        "start load", "load price", "price when", "when:then pay", "when:else value", "pay when-value",
        "value when-value", "when-value mail",
    ]  # fmt: skip


def test_a_branch_reads_what_was_before_the_condition() -> None:
    @workflow
    async def branch(order: str) -> None:
        found = await load(order)
        paid = await pay(1)
        with when(found.customer == "ada"):
            await mail(paid)
        with otherwise():
            await mail("nothing")

    document = traced(branch)
    assert edges(document) == ["start load", "load pay", "pay when", "when:then mail", "when:else mail-2"]


def test_what_follows_a_branch_waits_for_both_ways() -> None:
    @workflow
    async def branch(order: str) -> None:
        with when((await load(order)).customer == None):  # noqa: E711 - it is compared with null
            await mail("a")
        await sleep(1)

    document = traced(branch)
    assert document["blocks"]["when"]["params"]["cases"][0]["when"] == "<load.customer> == null"
    assert edges(document) == ["start load", "load when", "when:then mail", "mail sleep", "when:else sleep"]


def test_attempt_catches_what_fails() -> None:
    @workflow
    async def careful(amount: float) -> Any:
        return await attempt(lambda: pay(amount), lambda error: mail(f"failed: {error.message}"))

    document = traced(careful)
    assert document["blocks"]["mail"]["params"]["arguments"] == {"text": "failed: <attempt.error.message>"}
    assert edges(document) == [
        "start attempt", "attempt:body pay", "attempt:error mail", "attempt attempt-value", "mail attempt-value",
    ]  # fmt: skip
    assert document["blocks"]["attempt-value"]["params"] == {
        "first": ["<attempt.results[0] ?? null>", "<mail ?? null>"]
    }


def test_attempt_cleans_up() -> None:
    @workflow
    async def clean(order: str) -> Any:
        found = await load(order)

        async def close() -> None:
            await mail(f"closed for {found.customer}")
            await pay(0)

        return await attempt(lambda: price(found.items[0]), finally_=close)

    document = traced(clean)
    assert {name: block.get("parent") for name, block in document["blocks"].items()} == {
        "start": None, "load": None, "attempt": None, "price": "attempt", "mail": "attempt", "pay": "attempt",
        "result": None,
    }  # fmt: skip
    assert edges(document) == [
        "start load", "load attempt", "attempt:body price", "attempt:finally mail", "mail pay", "attempt result",
    ]  # fmt: skip
    assert document["blocks"]["result"]["params"] == {"value": "<attempt.results[0]>"}


def test_a_way_that_returns_a_value_from_outside_has_a_block_for_it() -> None:
    """Such a value is there whichever way the run takes."""

    @workflow
    async def choose(order: str) -> Any:
        found = await load(order)
        return await when(found.customer == "ada", lambda: mail("hi"), lambda: found.customer)

    document = traced(choose)
    assert document["blocks"]["value"]["params"] == {"value": "<load.customer>"}
    assert document["blocks"]["when-value"]["params"] == {"first": ["<mail ?? null>", "<value ?? null>"]}


def test_a_choice_that_nothing_reads_has_no_block() -> None:
    @workflow
    async def notify(order: str) -> None:
        await when((await load(order)).customer == "ada", lambda: mail("hi"), lambda: mail("ho"))

    assert [*traced(notify)["blocks"]] == ["start", "load", "when", "mail", "mail-2"]


def test_a_cleanup_beside_a_way_for_errors() -> None:
    @workflow
    async def careful() -> None:
        await attempt(lambda: pay(1), lambda error: mail(error.message), finally_=lambda: mail("closed"))

    assert edges(traced(careful)) == [
        "start attempt", "attempt:body pay", "attempt:finally mail", "attempt:error mail-2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: attempt(lambda: pay(1)), r"takes what to do after a failure or a cancel, or finally_\."),
        (lambda: attempt(lambda: pay(1), finally_=lambda: None), r"finally_ makes no calls\."),
    ],
)
def test_attempts_that_say_too_little(function: Any, message: str) -> None:
    async def wrong() -> None:
        await function()

    with pytest.raises(DefinitionError, match=message):
        workflow(wrong).document()


def test_a_cleanup_reads_nothing_of_what_it_cleans() -> None:
    @workflow
    async def wrong() -> None:
        kept: list[Any] = []

        async def do() -> None:
            kept.append(await pay(1))

        await attempt(do, finally_=lambda: mail(kept[0]))

    with pytest.raises(DefinitionError, match=r"<pay> exists only in a branch or body that ends before this"):
        wrong.document()


def test_approve_call_and_http_are_the_blocks_of_these_names() -> None:
    @workflow
    async def ask(order: str) -> Any:
        answer = await approve("Pay?", show={"order": order}, fields=Item, expires_in=60, on_expire="reject")
        child = await call("billing", {"name": answer.fields.name})
        return (await http("https://example.org/", method="POST", body={"paid": child, "by": answer.by})).status

    blocks = traced(ask)["blocks"]
    assert blocks["approve"]["params"] == {
        "title": "Pay?",
        "show": {"order": "<start.order>"},
        "fields": {
            "type": "object",
            "title": "Item",
            "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
            "required": ["name", "price"],
        },
        "expires_in_s": 60,
        "on_expire": "reject",
    }
    assert blocks["call-billing"]["params"] == {"workflow": "billing", "input": {"name": "<approve.name>"}}
    assert blocks["http"]["params"]["body"] == {"paid": "<call-billing>", "by": "<approve.answered_by>"}


def test_a_workflow_in_a_workflow_is_a_run_of_its_own() -> None:
    @workflow(name="inner")
    async def one(order: str) -> Any:
        return await load(order)

    @workflow
    async def outer() -> Any:
        return await one("a")

    document = traced(outer)
    assert document["blocks"]["call-inner"]["params"] == {"workflow": "inner", "input": {"order": "a"}}


def test_structs_with_traced_values_are_objects() -> None:
    @workflow
    async def made(order: str) -> Any:
        return await price(Item((await load(order)).customer, 2))

    assert traced(made)["blocks"]["price"]["params"]["arguments"] == {"item": {"name": "<load.customer>", "price": 2}}


def test_a_name_that_a_reference_would_find_instead_is_refused() -> None:
    @workflow
    async def confusing(order: str) -> Any:
        found = await load(order)
        other = await mail.with_options(id="loadcustomer")("x")
        return [found.customer, other]

    with pytest.raises(DefinitionError, match=r"<load\.customer> would read the block 'loadcustomer'"):
        confusing.document()


def test_a_run_that_continues_as_new_has_nothing_behind_that() -> None:
    async def offer(order: str, seen: int = 0) -> Any:
        found = await load(order)
        with when(found.customer == "Ada"):
            await mail("again")
            await continue_as_new({"order": order, "seen": found})
        with otherwise():
            await mail("enough")

    document = workflow(offer).document()
    assert document["blocks"]["continue"] == {
        "type": "continue_as_new",
        "params": {"input": {"order": "<start.order>", "seen": "<load>"}},
    }
    assert [edge for edge in document["edges"] if edge["source"] == "continue"] == []
    assert "mail continue" in edges(document)
    assert [found.code for found in compile_document(document, Registry.load([STEPS])).diagnostics] == []


def test_what_follows_a_way_that_continues_as_new_follows_the_others() -> None:
    async def offer(order: str) -> Any:
        found = await load(order)
        with when(found.customer == "Ada"):
            await continue_as_new({"order": order})
        await mail("enough")

    document = traced(workflow(offer))
    assert edges(document) == ["start load", "load when", "when:then continue", "when:else mail"]


def test_a_call_after_the_end_of_the_run_is_an_error() -> None:
    async def offer(order: str) -> Any:
        await continue_as_new({"order": order})
        return await mail(order)

    with pytest.raises(DefinitionError, match=r"no call can follow weft\.continue_as_new"):
        workflow(offer).document()
