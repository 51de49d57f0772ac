"""Steps outside of a trace, their names and options, and functions that cannot be steps."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from compiler.builder.errors import DefinitionError
from compiler.tracing.policy import Retry
from compiler.tracing.steps import step, steps_in
from compiler.tracing.workflow import workflow
from tests.unit.compiler.tracing.shop import Item, Order, load_later, mail, price


async def test_outside_of_a_trace_a_step_is_its_function() -> None:
    assert await price(Item("tea", 2.5), factor=2) == 5
    assert price.function(Item("tea", 2.5), 3) == 7.5
    assert await load_later("a") == Order("a", [Item("tea", 2.5)])


def test_options_are_the_policy_of_the_block() -> None:
    def one() -> None: ...

    assert step(one).policy == {}
    assert step(effect="none")(one).policy == {"on_lost": "retry"}
    made = step(retries=0, timeout=2.5, on_lost="fail")(one)
    assert made.policy == {"retry": {"max_attempts": 1}, "timeout_s": 2.5, "on_lost": "fail"}
    assert step(effect="read", cache=True)(one).policy == {"on_lost": "retry", "cache": {}}
    assert step(effect="read", cache=60)(one).policy == {"on_lost": "retry", "cache": {"ttl_s": 60}}
    retries = {"max_attempts": 3, "backoff": "fixed"}
    assert step(effect="none", on_lost="ask", retries=retries, cache={"scope": "run"})(one).policy == {
        "on_lost": "ask",
        "retry": {"max_attempts": 3, "backoff": "fixed"},
        "cache": {"scope": "run"},
    }
    retry = Retry(4, first=0.5, factor=3, at_most=60)
    assert step(retries=retry)(one).policy == {
        "retry": {"max_attempts": 5, "initial_ms": 500, "factor": 3, "max_ms": 60_000}
    }
    assert made.with_options(timeout=9).policy["timeout_s"] == 9


def test_the_name_is_that_of_module_and_function() -> None:
    assert mail.name == f"{mail.__module__}.mail"
    assert step(name="mails")(mail.function).name == "mails"


def test_two_functions_cannot_share_a_name() -> None:
    one, other = step(name="same")(lambda: 1), step(name="same")(lambda: 2)
    with pytest.raises(ValueError, match="two steps have the name 'same'"):
        steps_in([one, other])

    @workflow
    async def both() -> None:
        await one()
        await other()

    with pytest.raises(DefinitionError, match="two functions have the name 'same'"):
        both.document()


async def _many(*values: int) -> None: ...


async def _open(connection: socket.socket) -> None: ...


def _back() -> socket.socket: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "message"),
    [(_many, "values"), (_open, "connection.*no JSON Schema"), (_back, "no JSON Schema")],
)
def test_what_has_no_json_form_is_refused_where_it_is_defined(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message) as caught:
        step(function)
    assert (caught.value.file, caught.value.line) == (__file__, function.__code__.co_firstlineno)
    if function is not _back:
        with pytest.raises(DefinitionError, match=message):
            workflow(function)


@pytest.mark.parametrize("options", [{"effect": "maybe"}, {"timeout": 0}, {"retries": 1000}, {"name": "<a>"}])
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        step(**options)(mail.function)


def test_a_workflow_is_not_called_outside_of_an_engine() -> None:
    @workflow
    async def one() -> None:
        await mail("a")

    with pytest.raises(DefinitionError, match="runs in an engine"):
        one()  # type: ignore[unused-coroutine]  # it raises before there is one


def test_a_workflow_is_an_async_function() -> None:
    def one() -> None: ...

    with pytest.raises(DefinitionError, match="one is not an `async def`, as functions of workflows are") as caught:
        workflow(one)  # type: ignore[arg-type]  # tested
    assert caught.value.line == one.__code__.co_firstlineno


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'retry', but retries, timeout, cache"):
        step(retry=3)(price.function)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="no option 'tries'"):
        price.with_options(tries=3)  # type: ignore[call-arg]
