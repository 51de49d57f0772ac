"""What a traced function becomes: blocks, references, and which block waits for which."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.builder.errors import TraceError
from compiler.compile import compile_document
from compiler.tracing.blocks import http
from compiler.tracing.calls import approve, continue_as_new, in_order, sleep
from compiler.tracing.ways import attempt, each, otherwise, when
from compiler.tracing.workflow import FunctionWorkflow, call, workflow
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
    def offer(order: str, factor: int = 2) -> Any:
        """Prices an order.

        Not this.
        """
        found = load(order)
        one = price(found.items[0], factor)
        return total([one, 1, {"of": one}], note=f"for {found.customer}")

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
    def offer(order: str) -> Any:
        return [load(order).customer, load(order), mail("again")]

    document = traced(workflow(offer))
    assert document == workflow(offer).document()
    assert [*document["blocks"]] == ["start", "load", "load-2", "mail", "result"]


def test_independent_calls_run_side_by_side_and_after_orders_them() -> None:
    @workflow
    def both() -> None:
        paid = pay(1)
        mail("side by side")
        mail.with_options(id="then", after=[paid])("after")

    assert edges(traced(both)) == ["start pay", "start mail", "pay then"]


def test_in_order_each_call_waits_for_all_before_it() -> None:
    @workflow
    def ordered() -> None:
        mail("a")
        with in_order():
            pay(1)
            pay(2)
        mail("b")

    assert edges(traced(ordered)) == ["start mail", "mail pay", "pay pay-2", "pay-2 mail-2"]


def test_a_pause_waits_for_all_before_it_and_all_after_it_wait() -> None:
    @workflow
    def paused() -> None:
        pay(1)
        mail("a")
        sleep(60)
        mail("b")
        pay(2)

    document = traced(paused)
    assert edges(document) == ["start pay", "start mail", "pay sleep", "mail sleep", "sleep mail-2", "sleep pay-2"]
    assert document["blocks"]["sleep"]["params"] == {"seconds": 60}


def test_each_is_a_parallel_whose_value_is_the_list() -> None:
    @workflow
    def sums(order: str) -> Any:
        found = load(order)
        return total(each(found.items, price, concurrency=5), note="x")

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
    def rows(order: str) -> Any:
        found = load(order)
        other = mail(found.customer)

        def row(item: Any) -> Any:
            pay(item.price)
            return {"name": item.name, "price": price(item), "mail": other}

        return each(found.items, row, one_at_a_time=True)

    document = traced(rows)
    assert document["blocks"]["each-row"]["type"] == "loop"
    assert document["blocks"]["value"]["params"]["value"] == {
        "name": "<each-row.item.name>",
        "price": "<price>",
        "mail": "<mail>",
    }
    # `mail` is outside: the loop waits for it, not the block in the loop
    assert edges(document) == [
        "start load", "load mail", "mail each-row", "each-row:body pay", "each-row:body price", "price value",
        "pay value", "each-row result",
    ]  # fmt: skip


def test_when_chooses_a_value() -> None:
    @workflow
    def choose(order: str, limit: float) -> Any:
        found = load(order)
        cost = price(found.items[0])
        words = when((cost > limit) & ~(found.customer == "ada"), lambda: pay(cost), lambda: f"free for {order}")
        return mail(words)

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


def test_what_a_branch_reads_from_outside_is_there_before_the_condition() -> None:
    """A block starts when one of its edges is live: an edge from outside would start it although the branch is not."""

    @workflow
    def branch(order: str) -> None:
        found = load(order)
        paid = pay(1)
        with when(found.customer == "ada"):
            mail(paid)
        with otherwise():
            mail("nothing")

    document = traced(branch)
    assert edges(document) == [
        "start load", "start pay", "load when", "pay when", "when:then mail", "when:else mail-2",
    ]  # fmt: skip


def test_a_pause_after_a_branch_waits_for_both_ways() -> None:
    @workflow
    def branch(order: str) -> None:
        with when(load(order).customer == None):  # noqa: E711
            mail("a")
        sleep(1)

    document = traced(branch)
    assert document["blocks"]["when"]["params"]["cases"][0]["when"] == "<load.customer> == null"
    assert edges(document) == ["start load", "load when", "when:then mail", "mail sleep", "when:else sleep"]


def test_attempt_catches_what_fails() -> None:
    @workflow
    def careful(amount: float) -> Any:
        return attempt(lambda: pay(amount), lambda error: mail(f"failed: {error.message}"))

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
    def clean(order: str) -> Any:
        found = load(order)

        def close() -> None:
            mail(f"closed for {found.customer}")
            pay(0)

        return attempt(lambda: price(found.items[0]), finally_=close)

    document = traced(clean)
    assert {name: block.get("parent") for name, block in document["blocks"].items()} == {
        "start": None, "load": None, "attempt": None, "price": "attempt", "mail": "attempt", "pay": "attempt",
        "result": None,
    }  # fmt: skip
    assert edges(document) == [
        "start load", "load attempt", "attempt:body price", "attempt:finally mail", "attempt:finally pay",
        "attempt result",
    ]  # fmt: skip
    assert document["blocks"]["result"]["params"] == {"value": "<attempt.results[0]>"}


def test_a_way_that_returns_a_value_from_outside_has_a_block_for_it() -> None:
    """Such a value is there whichever way the run takes."""

    @workflow
    def choose(order: str) -> Any:
        found = load(order)
        return when(found.customer == "ada", lambda: mail("hi"), lambda: found.customer)

    document = traced(choose)
    assert document["blocks"]["value"]["params"] == {"value": "<load.customer>"}
    assert document["blocks"]["when-value"]["params"] == {"first": ["<mail ?? null>", "<value ?? null>"]}


def test_a_choice_that_nothing_reads_has_no_block() -> None:
    @workflow
    def notify(order: str) -> None:
        when(load(order).customer == "ada", lambda: mail("hi"), lambda: mail("ho"))

    assert [*traced(notify)["blocks"]] == ["start", "load", "when", "mail", "mail-2"]


def test_a_cleanup_beside_a_way_for_errors() -> None:
    @workflow
    def careful() -> None:
        attempt(lambda: pay(1), lambda error: mail(error.message), finally_=lambda: mail("closed"))

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
    function.__name__ = "wrong"
    with pytest.raises(TraceError, match=message):
        workflow(function).document()


def test_a_cleanup_reads_nothing_of_what_it_cleans() -> None:
    @workflow
    def wrong() -> None:
        kept: list[Any] = []
        attempt(lambda: kept.append(pay(1)), finally_=lambda: mail(kept[0]))

    with pytest.raises(TraceError, match=r"<pay> exists only in a branch or body that ends before this"):
        wrong.document()


def test_approve_call_and_http_are_the_blocks_of_these_names() -> None:
    @workflow
    def ask(order: str) -> Any:
        answer = approve("Pay?", show={"order": order}, fields=Item, expires_in=60, on_expire="reject")
        child = call("billing", {"name": answer.name})
        return http("https://example.org/", method="POST", body={"paid": child, "by": answer.answered_by}).status

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
    def one(order: str) -> Any:
        return load(order)

    @workflow
    def outer() -> Any:
        return one("a")

    document = traced(outer)
    assert document["blocks"]["call-inner"]["params"] == {"workflow": "inner", "input": {"order": "a"}}


def test_async_functions_are_traced_as_others() -> None:
    @workflow
    async def offer(order: str) -> Any:
        found = await load_later(order)
        return price(found.items[0])

    assert edges(traced(offer)) == ["start load_later", "load_later price"]


def test_structs_with_traced_values_are_objects() -> None:
    @workflow
    def made(order: str) -> Any:
        return price(Item(load(order).customer, 2))

    assert traced(made)["blocks"]["price"]["params"]["arguments"] == {"item": {"name": "<load.customer>", "price": 2}}


def test_a_name_that_a_reference_would_find_instead_is_refused() -> None:
    @workflow
    def confusing(order: str) -> Any:
        found = load(order)
        other = mail.with_options(id="loadcustomer")("x")
        return [found.customer, other]

    with pytest.raises(TraceError, match=r"<load\.customer> would read the block 'loadcustomer'"):
        confusing.document()


def test_a_run_that_continues_as_new_has_nothing_behind_that() -> None:
    def offer(order: str, seen: int = 0) -> Any:
        found = load(order)
        with when(found.customer == "Ada"):
            mail("again")
            continue_as_new({"order": order, "seen": found})
        with otherwise():
            mail("enough")

    document = workflow(offer).document()
    assert document["blocks"]["continue"] == {
        "type": "continue_as_new",
        "params": {"input": {"order": "<start.order>", "seen": "<load>"}},
    }
    assert [edge for edge in document["edges"] if edge["source"] == "continue"] == []
    assert "mail continue" in edges(document)
    assert [found.code for found in compile_document(document, Registry.load([STEPS])).diagnostics] == []


def test_what_follows_a_way_that_continues_as_new_follows_the_others() -> None:
    def offer(order: str) -> Any:
        found = load(order)
        with when(found.customer == "Ada"):
            continue_as_new({"order": order})
        mail("enough")

    document = traced(workflow(offer))
    assert edges(document) == ["start load", "load when", "when:then continue", "when:else mail"]


def test_a_call_behind_the_end_of_the_run_is_an_error() -> None:
    def offer(order: str) -> Any:
        continue_as_new({"order": order})
        return mail(order)

    with pytest.raises(TraceError, match=r"no call can follow weft\.continue_as_new"):
        workflow(offer).document()
