"""Query parameters: one struct reads them and describes them."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct, field
from starlette.datastructures import QueryParams

from executor.errors import BadRequest
from server.http.request import FLAGS, INTEGER_MAX, parameters_of, read_query


class Everything(Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=10, description="How many.")] = 5
    after: int = 0
    kind: Literal["b", "a"] | None = None
    wait: Annotated[float, Meta(ge=0, extra={"cut_at": 60})] | None = None
    whole: bool = False
    start: Annotated[str, Meta(description="Where.", extra_json_schema={"minLength": 2})] | None = field(
        default=None, name="from"
    )
    version: Annotated[str, Meta(pattern="^([1-9][0-9]?|draft)$")] = "draft"


class Needed(Struct, frozen=True):
    expr: Annotated[str, Meta(extra={"hint": "?expr=@daily"})]


def test_what_is_absent_or_empty_has_its_default() -> None:
    assert read_query(QueryParams(""), Everything) == read_query(QueryParams("limit=&from=&x=1"), Everything)
    assert read_query(QueryParams(""), Everything) == Everything()


def test_values_are_read_by_their_names_in_the_query() -> None:
    query = QueryParams("limit=10&after=7&kind=a&wait=1.5&whole=Yes&from=send&version=12")
    assert read_query(query, Everything) == Everything(10, 7, "a", 1.5, True, "send", "12")


def test_a_length_of_time_is_cut() -> None:
    assert read_query(QueryParams("wait=1e9"), Everything).wait == 60


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=11", "limit must be a whole number from 1 to 10"),
        ("limit=0", "limit must be a whole number from 1 to 10"),
        ("limit=1.0", "limit must be a whole number"),
        ("limit=%D9%A1", "limit must be a whole number"),
        ("after=-1", f"after must be a whole number from 0 to {INTEGER_MAX}"),
        (f"after={INTEGER_MAX + 1}", "after must be a whole number"),
        ("kind=c", "kind must be one of b, a"),
        ("wait=-1", "wait must be a number of seconds from 0 to 60"),
        ("wait=nan", "wait must be a number of seconds"),
        ("whole=maybe", "whole must be 1 or 0"),
        ("version=%D9%A1", "version must match"),
        ("version=1%0A", "version must match"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_bounds(query: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        read_query(QueryParams(query), Everything)


def test_a_required_parameter_that_is_missing_is_refused_with_a_hint() -> None:
    with pytest.raises(BadRequest, match="expr is missing") as refused:
        read_query(QueryParams("expr="), Needed)
    assert refused.value.hint == "?expr=@daily"


def test_the_description_has_the_same_bounds() -> None:
    schemas = {parameter.name: parameter.schema for parameter in parameters_of(Everything)}
    assert schemas == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        "after": {"type": "integer", "minimum": 0, "maximum": INTEGER_MAX},
        "kind": {"enum": ["b", "a"]},
        "wait": {"type": "number", "minimum": 0},
        "whole": {"enum": list(FLAGS)},
        "from": {"type": "string", "minLength": 2},
        "version": {"type": "string", "pattern": "^([1-9][0-9]?|draft)$"},
    }
    assert [parameter.description for parameter in parameters_of(Everything)] == [
        "How many.",
        "",
        "",
        "",
        "",
        "Where.",
        "",
    ]
    assert [parameter.required for parameter in parameters_of(Needed)] == [True]


def test_a_type_that_no_query_can_hold_is_a_bug() -> None:
    class Wrong(Struct, frozen=True):
        items: list[int] = []

    with pytest.raises(TypeError, match="items"):
        parameters_of(Wrong)
