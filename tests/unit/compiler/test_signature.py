"""Params and outputs from signatures and docstrings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from compiler.signature import (
    Param,
    SignatureUnusable,
    TypeUnknown,
    Unfit,
    fields_of,
    is_struct,
    output_of,
    signature_of,
    words_of,
)

if TYPE_CHECKING:
    from executor.kernel.handler.base import StepContext


@dataclass
class Address:
    street: str
    zip_code: str | None = None


class Quote(msgspec.Struct):
    price: float


def quote_price(
    item: str,
    ctx: StepContext,
    to: Address,
    key: Annotated[str, Param(secret=True, title="API key")],
    amount: Annotated[int, msgspec.Meta(ge=1)] = 1,
    tags: list[str] | None = None,
    extra: Any = None,
) -> Quote:
    """Price of an item,
    delivered.

    More about it.

    Args:
        item: name in the
            catalogue
        amount (int): how many

    Returns:
        the price
    """
    raise NotImplementedError


def test_params_of_a_function() -> None:
    signature = signature_of(quote_price)
    assert (signature.title, signature.summary) == ("Quote price", "Price of an item, delivered.")
    assert signature.context
    params = signature.params
    assert params["required"] == ["item", "to", "key"] and params["additionalProperties"] is False
    of = params["properties"]
    assert list(of) == ["item", "to", "key", "amount", "tags", "extra"]
    assert of["item"] == {
        "type": "string",
        "title": "Item",
        "description": "name in the catalogue",
        "x-ui": {"order": 1, "widget": "text"},
    }
    assert of["amount"]["default"] == 1 and of["amount"]["minimum"] == 1 and of["amount"]["description"] == "how many"
    assert of["key"]["x-weft"] == "secret" and of["key"]["title"] == "API key"
    assert of["to"]["x-ui"]["widget"] == "fields" and of["to"]["properties"]["zip_code"]["title"] == "Zip code"
    assert of["tags"]["type"] == ["array", "null"] and of["tags"]["x-ui"]["widget"] == "list"
    assert of["extra"] == {"title": "Extra", "x-ui": {"order": 6, "widget": "json"}}
    assert output_of(signature.returns) == {
        "title": "Quote",
        "type": "object",
        "properties": {"price": {"type": "number"}},
        "required": ["price"],
    }


def test_arguments_have_their_types() -> None:
    signature = signature_of(quote_price)
    given = {"item": "tea", "to": {"street": "Main"}, "key": "k", "amount": None, "tags": None}
    assert signature.arguments(given) == {"item": "tea", "to": Address("Main"), "key": "k", "tags": None}


@pytest.mark.parametrize(
    "change, pointer, message",
    [
        ({"item": 3}, "/item", "item: Expected `str`"),
        ({"to": {"street": 1}}, "/to/street", "to: Expected `str`"),
        ({"amount": 0}, "/amount", "amount: Expected `int` >= 1"),
        ({"other": 1}, "/other", "quote_price has no param 'other'"),
        ({"item": None}, "/item", "item: Expected `str`, got `null`"),
    ],
)
def test_arguments_that_do_not_fit(change: dict[str, Any], pointer: str, message: str) -> None:
    given = {"item": "tea", "to": {"street": "Main"}, "key": "k", **change}
    with pytest.raises(Unfit, match=message) as caught:
        signature_of(quote_price).arguments(given)
    assert caught.value.pointer == pointer
    with pytest.raises(Unfit, match="item is required"):
        signature_of(quote_price).arguments({})


def test_fields_of_a_class_are_its_params() -> None:
    @dataclass
    class Resize:
        """Resizes an image.

        :param width: in pixels
        """

        width: int = 100
        steps: list[int] = field(default_factory=list)

    signature = fields_of(Resize)
    assert signature.summary == "Resizes an image." and is_struct(Resize) and not is_struct(int)
    assert signature.params["properties"]["width"]["description"] == "in pixels"
    assert [one.required for one in signature.parameters] == [False, False]
    assert signature.arguments({"width": 3}) == {"width": 3}
    assert signature_of(lambda x: x).params["properties"]["x"] == {
        "title": "X",
        "x-ui": {"order": 1, "widget": "json"},
    }


def test_what_cannot_be_a_signature_is_refused() -> None:
    def several(*items: str) -> None: ...

    def unknown(item: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def odd(item: complex) -> None: ...

    with pytest.raises(SignatureUnusable, match=r"several: the parameter \*items"):
        signature_of(several)
    with pytest.raises(SignatureUnusable, match="the parameter item cannot be resolved"):
        signature_of(unknown)
    with pytest.raises(TypeUnknown, match="odd: the parameter item: complex"):
        signature_of(odd)


def test_outputs() -> None:
    class Ended: ...

    assert output_of(None) is None and output_of(Any) is None and output_of(Ended, (Ended,)) is None
    assert output_of(Quote | Ended, (Ended,)) is None
    assert output_of(int) == {"type": "integer"}
    assert output_of(type(None)) == {"type": "null"}


def test_words() -> None:
    assert [words_of(name) for name in ("fetch_price", "FetchPrice", "url", "URL")] == [
        "Fetch price",
        "Fetch price",
        "Url",
        "URL",
    ]
