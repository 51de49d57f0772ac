from typing import Any

import pytest

from executor.blocks.types.start import block
from executor.errors import BlockError
from executor.kernel.values.run_input import RESERVED
from tests.unit.executor.blocks.types.flow import context


async def output(fields: list[dict[str, Any]] | None, input: Any) -> Any:
    done = await block.run(context({} if fields is None else {"fields": fields}, "start", input=input))
    assert (done.route, list(done.patches)) == ("out", [])
    return done.output


@pytest.mark.parametrize(
    ("input", "expected"),
    [(None, {}), ({}, {}), ({"a": 1}, {"a": 1}), ([1], {"input": [1]}), ("x", {"input": "x"}), (0, {"input": 0})],
)
async def test_the_output_is_the_input(input: Any, expected: Any) -> None:
    assert await output(None, input) == expected


async def test_fields_are_coerced_and_defaulted_and_the_rest_passes_through() -> None:
    fields: list[dict[str, Any]] = [
        {"name": "n", "type": "number", "default": "4"},
        {"name": "flag", "type": "boolean"},
        {"name": "o", "type": "object"},
        {"name": "absent", "type": "string"},
        {"name": "null", "default": 7},
        {"name": "zero", "type": "number", "default": 9},
    ]
    given = {"flag": "true", "o": '{"k":1}', "extra": "e", "null": None, "zero": 0}
    expected = {"n": 4, "flag": True, "o": {"k": 1}, "extra": "e", "null": 7, "zero": 0}
    assert await output(fields, given) == expected
    assert given["flag"] == "true"  # the input itself is left alone


async def test_what_cannot_be_read_as_its_type_stays() -> None:
    assert await output([{"name": "n", "type": "number"}], {"n": "many"}) == {"n": "many"}


async def test_a_required_field() -> None:
    fields: list[dict[str, Any]] = [{"name": "n", "required": True}]
    assert await output(fields, {"n": False}) == {"n": False}
    assert await output([{**fields[0], "default": 1}], {}) == {"n": 1}
    for given in ({}, {"n": None}, None):
        with pytest.raises(BlockError, match="input field 'n' is required") as caught:
            await output(fields, given)
        assert (caught.value.code, caught.value.retryable) == ("input_missing", False)


@pytest.mark.parametrize("name", RESERVED)
async def test_reserved_names_are_refused(name: str) -> None:
    tries: list[tuple[list[dict[str, Any]] | None, dict[str, Any]]] = [(None, {name: "x"}), ([{"name": name}], {})]
    for fields, given in tries:
        with pytest.raises(BlockError, match=name) as caught:
            await output(fields, given)
        assert (caught.value.code, caught.value.retryable) == ("input_reserved", False)


def test_spec() -> None:
    assert block.spec.trigger and block.spec.effect == "none"


FILE = {"type": "file", "id": "file_" + "0" * 64, "name": "a.csv", "media_type": "text/csv", "size": 1}


async def test_a_field_that_is_a_file() -> None:
    fields = [{"name": "sales", "type": "file"}]
    assert await output(fields, {"sales": FILE}) == {"sales": FILE}
    assert await output(fields, {}) == {}
    for given in ("a.csv", {"id": FILE["id"]}, [FILE], {}, False):
        with pytest.raises(BlockError, match="input field 'sales' must be a file") as caught:
            await output(fields, {"sales": given})
        assert (caught.value.code, caught.value.retryable) == ("not_a_file", False)
        assert "POST /api/files" in caught.value.hint
    with pytest.raises(BlockError, match="required"):
        await output([{**fields[0], "required": True}], {})


def test_a_file_has_no_default() -> None:
    assert block.spec.check is not None
    [found] = block.spec.check(
        {"fields": [{"name": "n", "default": 1}, {"name": "f", "type": "file", "default": FILE}]}
    )
    assert (found.code, found.pointer) == ("param_invalid", "/fields/1/default")
    assert block.spec.check({"fields": "<a>"}) == block.spec.check({}) == ()


def test_the_shape_of_the_output() -> None:
    assert block.spec.output_from is not None
    shape = block.spec.output_from({"fields": [{"name": "n", "type": "number"}, {"name": "f", "type": "file"}]})
    assert shape is not None and shape["additionalProperties"]
    assert shape["properties"]["n"] == {} and list(shape["properties"]["f"]["properties"]) == list(FILE)
    assert block.spec.output_from({"fields": "<a>"}) is block.spec.output_from({}) is None
