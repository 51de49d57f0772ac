"""`@weft.block`: typed functions and classes as block types, in a real engine."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from compiler.compile import compile_document
from compiler.signature import Param
from executor.blocks.types.registry import Registry
from executor.blocks.types.typed import TypedBlock, block
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext, Suspend
from tests.support.documents import document
from tests.support.runs import engine_on, outputs, ran


class Price(msgspec.Struct):
    amount: float
    currency: str = "EUR"


class Address(pydantic.BaseModel):
    street: str
    number: int = pydantic.Field(ge=1)


@block(type="price_of", category="data", effect="read", attempts=2, timeout_s=5)
async def price(item: str, amount: Annotated[int, msgspec.Meta(ge=1)] = 1, *, ctx: StepContext) -> Price:
    """Price of an item.

    Args:
        item: name in the catalogue
    """
    ctx.log("price of", item)
    return Price(2.5 * amount)


@block
def threaded(address: Address, names: list[str] | None = None) -> dict[str, Any]:
    return {
        "street": address.street,
        "names": names,
        "thread": threading.current_thread() is not threading.main_thread(),
    }


@block(effect="none", handles=("small", "large"))
def sized(value: float) -> Done:
    return Done(Price(value), route="large" if value > 10 else "small")


@dataclass
class Resize:
    """Resizes an image."""

    width: int = 100
    factor: float = 0.5

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("width is negative")

    async def run(self, ctx: StepContext) -> str:
        return f"{ctx.block}: {self.width * self.factor:g}"


class Plain:
    texts: tuple[str, ...] = ()

    def run(self) -> int:
        return len(self.texts)


resize = block(type="resize", effect="none", title="Resize an image")(Resize)
plain = block(Plain)


BLOCKS: tuple[TypedBlock[..., Any], ...] = (price, threaded, sized, resize, plain)


def one(type: str, **params: Any) -> dict[str, Any]:
    return document("one", "start a", blocks={"a": {"type": type, "params": params}})


async def output_of(tmp_path: Path, type: str, **params: Any) -> Any:
    async with engine_on(tmp_path / "typed.db", *BLOCKS) as engine:
        view = await ran(engine, one(type, **params))
        if view.error is not None:
            raise BlockError(view.error["message"], code=view.error["code"])
        return outputs(view)["a"]


def test_the_spec_follows_from_the_function() -> None:
    spec = price.spec
    assert (spec.type, spec.title, spec.description) == ("price_of", "Price", "Price of an item.")
    assert (spec.category, spec.effect, spec.idempotent) == ("data", "read", True)
    assert (spec.attempts, spec.timeout_ms) == (2, 5000)
    assert spec.params["required"] == ["item"] and list(spec.params["properties"]) == ["item", "amount"]
    assert spec.output is not None and list(spec.output["properties"]) == ["amount", "currency"]
    assert sized.spec.output is None and sized.spec.handles == ("small", "large")
    assert (threaded.spec.effect, threaded.spec.idempotent) == ("write", False)
    assert (resize.spec.title, resize.spec.description) == ("Resize an image", "Resizes an image.")
    assert resize.spec.output == {"type": "string"}
    entry = next(one for one in Registry(BLOCKS).catalogue() if one["type"] == "price_of")
    assert entry["params"]["properties"]["item"]["x-ui"] == {"order": 1, "widget": "text"}


def test_params_are_checked_when_a_document_is_compiled() -> None:
    def codes(**params: Any) -> list[tuple[str, str | None]]:
        found = compile_document(one("price_of", **params), Registry.load(BLOCKS)).diagnostics
        return [(finding.code, finding.pointer) for finding in found]

    assert codes(item="tea", amount=3) == []
    assert codes(item="<start.item>", amount="<start.n>") == []
    assert codes(amount=0) == [
        ("required", "/blocks/a/params/item"),
        ("param_invalid", "/blocks/a/params/amount"),
    ]
    assert [code for code, _ in codes(item="tea", colour="red")] == ["param_unknown"]


async def test_an_async_function(tmp_path: Path) -> None:
    assert await output_of(tmp_path, "price_of", item="tea", amount=2) == {"amount": 5.0, "currency": "EUR"}


async def test_a_plain_function_runs_in_a_thread_with_models_of_pydantic(tmp_path: Path) -> None:
    address = {"street": "Main", "number": 4}
    output = await output_of(tmp_path, "threaded", address=address, names=["a"])
    assert output == {"street": "Main", "names": ["a"], "thread": True}


async def test_a_done_chooses_the_exit(tmp_path: Path) -> None:
    blocks = {"a": {"type": "sized", "params": {"value": "<start.n>"}}, "big": {"type": "set", "params": {"value": 1}}}
    async with engine_on(tmp_path / "typed.db", *BLOCKS) as engine:
        view = await ran(engine, document("exits", "start a", "a large big", blocks=blocks), input={"n": 11})
        assert outputs(view)["a"] == {"amount": 11.0, "currency": "EUR"} and outputs(view)["big"] == 1
        assert "big" not in outputs(
            await ran(engine, document("exits", "start a", "a large big", blocks=blocks), input={"n": 1})
        )


async def test_a_class_has_its_params_as_fields_and_one_object_for_each_attempt(tmp_path: Path) -> None:
    assert await output_of(tmp_path, "resize", width=10) == "a: 5"
    assert await output_of(tmp_path, "Plain", texts=["x", "y"]) == 2


@pytest.mark.parametrize(
    "type, params, code, message",
    [
        ("price_of", {"item": "<start.number>"}, "params_invalid", r"item: Expected `str`, got `int` \(at /item\)"),
        (
            "threaded",
            {"address": {"street": "<start.text>", "number": "<start.zero>"}},
            "params_invalid",
            "greater than",
        ),
        ("resize", {"width": -1}, "params_invalid", "width is negative"),
    ],
)
async def test_values_that_do_not_fit_fail_the_block(
    tmp_path: Path, type: str, params: dict[str, Any], code: str, message: str
) -> None:
    async with engine_on(tmp_path / "typed.db", *BLOCKS) as engine:
        view = await ran(engine, one(type, **params), input={"number": 3, "text": "Main", "zero": 0})
    assert view.error is not None and view.error["code"] == code
    assert re.search(message, view.error["message"])


async def test_what_a_function_raises_fails_the_block(tmp_path: Path) -> None:
    raised: list[BaseException] = [ValueError("not today"), BlockError("sold out", code="sold_out", retryable=False)]

    @block(type="raises")
    async def raises(n: int) -> None:
        raise raised[n]

    @block(type="odd")
    def odd() -> Any:
        return {"a": object()}

    async with engine_on(tmp_path / "typed.db", raises, odd) as engine:
        first = (await ran(engine, one("raises", n=0))).error
        second = (await ran(engine, one("raises", n=1))).error
        third = (await ran(engine, one("odd"))).error
    assert first is not None and (first["code"], first["message"]) == (
        "function_failed",
        "raises: ValueError: not today",
    )
    assert second is not None and (second["code"], second["message"]) == ("sold_out", "sold out")
    assert third is not None and third["code"] == "output_invalid" and "object" in third["message"]


async def test_a_secret_stands_only_in_a_param_for_it() -> None:
    @block(type="charge")
    async def charge(key: Annotated[str, Param(secret=True)], note: str = "") -> str:
        return note

    def codes(**params: Any) -> list[str]:
        compiled = compile_document(
            one("charge", **params), Registry.load([charge]), env_names={"KEY"}, stored_secrets={"KEY"}
        )
        return [finding.code for finding in compiled.diagnostics]

    assert codes(key="${KEY}") == []
    assert codes(key="x", note="${KEY}") == ["secret_misplaced"]


def test_a_block_can_be_called_as_the_function_that_it_was() -> None:
    assert threaded(Address(street="Main", number=1))["street"] == "Main"
    assert isinstance(threaded, TypedBlock) and repr(threaded) == "<block type 'threaded'>"
    made: Any = plain
    assert made(texts=("a",)).texts == ("a",)


async def test_a_suspend_pauses(tmp_path: Path) -> None:
    @block(type="asks")
    async def asks(title: str) -> Suspend:
        return Suspend("approval", {"title": title}, None, ("yes",))

    assert asks.spec.pauses and asks.spec.output is None
    async with engine_on(tmp_path / "typed.db", asks) as engine:
        run = (await engine.submit(one("asks", title="Ready?"))).run
        view = await engine.wait_finished(run, 30)
        assert view.status == "waiting" and (await engine.waits.list(run=run))[0].request["title"] == "Ready?"


def test_what_cannot_be_a_block_type_is_refused() -> None:
    def work() -> None: ...

    with pytest.raises(ValueError, match="the category is one of"):
        block(category="other")(work)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="a type begins with a letter"):
        block(type="a b")(work)
    with pytest.raises(ValueError, match="effect is one of"):
        block(effect="maybe")(work)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="handles"):
        block(handles=())(work)
    with pytest.raises(ValueError, match="attempts"):
        block(attempts=0)(work)
    with pytest.raises(TypeError, match="no method run"):
        block(type("Empty", (), {}))
    with pytest.raises(TypeError, match="for functions and classes"):
        block(3)  # type: ignore[call-overload]

    class Wrong:
        def run(self, item: str) -> None: ...

    with pytest.raises(TypeError, match=r"Wrong.run may take ctx only, not item"):
        block(Wrong)

    def odd() -> complex: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match="block type 'odd': the result: complex"):
        block(odd)


def test_heartbeats_are_a_policy_with_a_default_of_the_type() -> None:
    @block(type="slow", heartbeat_timeout_ms=60_000)
    async def slow() -> None: ...

    def compiled(type: str, **policy: Any) -> Any:
        made = document("one", "start a", blocks={"a": {"type": type, "policy": policy}})
        return compile_document(made, Registry.load([slow]))

    def limit(**policy: Any) -> Any:
        return compiled("slow", **policy).plan.regions[0].nodes[1].policy.heartbeat_timeout_ms

    assert (limit(), limit(heartbeat_timeout_ms=500)) == (60_000, 500)
    short = compiled("slow", heartbeat_timeout_ms=50).diagnostics[0]
    assert short.pointer == "/blocks/a/policy/heartbeat_timeout_ms" and "100" in short.message
    (unread,) = compiled("set", heartbeat_timeout_ms=500).diagnostics
    assert unread.code == "policy_unread"
