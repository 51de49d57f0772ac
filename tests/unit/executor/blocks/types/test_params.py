"""`TypedParams`: the schema that follows from a class, and the values that it reads."""

from __future__ import annotations

from typing import Any

import pytest

from executor.blocks.types.params import FILLED, TypedParams, changed, param
from executor.errors import BlockError


class _Part(TypedParams):
    id: str = param("Id", required=True, pattern=FILLED)
    weight: float = param("Weight", default=1, minimum=0, maximum=10)


class _Quote(TypedParams):
    item: str = param("Item", "Name in the catalogue.", required=True)
    amount: int = param("Amount", default=1, minimum=1, maximum=100)
    urgent: bool = param("Urgent", default=False)
    way: str = param("Way", default="air", choices={"air": "By air", "sea": "By sea"})
    parts: list[_Part] | None = param("Parts")
    from_: str | None = param("From", advanced=True)
    more: Any = param("More", rows=3)


class _Later(_Quote, shift=10, when={"way": ["sea"]}, required=("from_",)):
    amount: int = changed(_Quote.declared["amount"], description="How many.", order=1)


def test_the_schema_follows_from_the_fields() -> None:
    schema = _Quote.json_schema
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["item"], False)
    assert schema["properties"]["amount"] == {
        "type": "integer",
        "title": "Amount",
        "default": 1,
        "minimum": 1,
        "maximum": 100,
        "x-ui": {"order": 2, "widget": "number"},
    }
    assert schema["properties"]["way"]["enum"] == ["air", "sea"]
    assert schema["properties"]["way"]["x-ui"] == {"order": 4, "widget": "select"}
    assert schema["properties"]["parts"]["items"] == _Part.json_schema
    assert schema["properties"]["from"]["x-ui"] == {"order": 6, "widget": "text", "advanced": True}
    assert schema["properties"]["more"] == {"title": "More", "x-ui": {"order": 7, "widget": "json", "rows": 3}}


def test_a_class_of_another_one_has_its_fields() -> None:
    later = _Later.json_schema
    assert later["required"] == ["item", "from"]
    assert later["properties"]["item"]["x-ui"]["order"] == 11
    assert later["properties"]["item"]["x-when"] == {"way": ["sea"]}
    assert later["properties"]["amount"]["description"] == "How many."
    assert later["properties"]["amount"]["x-ui"]["order"] == 1
    assert _Quote.json_schema["properties"]["item"]["x-ui"]["order"] == 1


def test_values_are_read_as_their_types() -> None:
    quote = _Quote({"item": 7, "amount": "3", "urgent": "true", "way": "sea", "parts": [{"id": "a", "weight": "2.5"}]})
    assert (quote.item, quote.amount, quote.urgent, quote.way) == ("7", 3, True, "sea")
    assert quote.parts is not None
    assert [(part.id, part.weight) for part in quote.parts] == [("a", 2.5)]
    empty = _Quote({"item": "x", "amount": "", "way": None, "from": ""})
    assert (empty.amount, empty.urgent, empty.way, empty.from_, empty.more) == (1, False, "air", None, None)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Item is required"),
        ({"item": {}}, "item must be text, not an object"),
        ({"item": "x", "amount": 101}, "amount must be a whole number from 1 to 100, not '101'"),
        ({"item": "x", "amount": True}, "amount must be a whole number"),
        ({"item": "x", "amount": 1.5}, "amount must be a whole number"),
        ({"item": "x", "way": "rail"}, "way must be one of air, sea, not 'rail'"),
        ({"item": "x", "parts": {}}, "parts must be a list"),
        ({"item": "x", "parts": ["a"]}, "each item of parts must be an object"),
        ({"item": "x", "parts": [{"id": " "}]}, "Id is required"),
        ({"item": "x", "parts": [{"id": "a", "weight": float("nan")}]}, "weight must be a number from 0 to 10"),
    ],
)
def test_values_that_do_not_fit(params: dict[str, Any], message: str) -> None:
    with pytest.raises(BlockError) as caught:
        _Quote(params)
    assert caught.value.code == "params_invalid"
    assert message in caught.value.message
