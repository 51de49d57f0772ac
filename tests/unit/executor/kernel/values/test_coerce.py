from typing import Any

import pytest

from executor.errors import BlockError
from executor.kernel.values.coerce import coerce, literal, to_count, truthy


@pytest.mark.parametrize("value", [True, 1, -1, 0.5, "0", "false", " ", [], {}, [0], {"a": None}])
def test_true_in_javascript(value: Any) -> None:
    assert truthy(value) is True


@pytest.mark.parametrize("value", [False, None, 0, 0.0, -0.0, ""])
def test_false_in_javascript(value: Any) -> None:
    assert truthy(value) is False


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("string", 3, "3"),
        ("string", {"a": 1}, '{"a":1}'),
        ("string", "x", "x"),
        ("number", "4", 4),
        ("number", " 4.5 ", 4.5),
        ("number", "1e3", 1000.0),
        ("number", "abc", "abc"),
        ("number", "nan", "nan"),
        ("number", "1_000", "1_000"),
        ("number", "1e999", "1e999"),
        ("number", "9" * 30, "9" * 30),
        ("number", True, True),
        ("integer", "4.0", 4),
        ("integer", 4.0, 4),
        ("integer", "4.5", 4.5),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("boolean", 1, True),
        ("boolean", "0", False),
        ("boolean", "maybe", "maybe"),
        ("object", '{"k":1}', {"k": 1}),
        ("object", "[1]", "[1]"),
        ("object", "{", "{"),
        ("array", "[1]", [1]),
        ("any", "1", "1"),
        ("number", None, None),
    ],
)
def test_coerce(type: str, value: Any, expected: Any) -> None:
    result = coerce(type, value)
    assert result == expected
    assert isinstance(result, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-2", -2), ("1.5", 1.5), ("true", True), ("false", False),
        ("007", "007"), ("1e3", "1e3"), ("12345678901234567890", "12345678901234567890"),
        ("9007199254740993", "9007199254740993"),
        ("null", "null"), ("x'y", "x'y"), ("", ""), ("+1", "+1"),
    ],
)  # fmt: skip
def test_environment_texts_as_code_reads_them(text: str, value: Any) -> None:
    assert literal(text) == value
    assert type(literal(text)) is type(value)


@pytest.mark.parametrize(("value", "count"), [(0, 0), (3, 3), ("3", 3), (" 10 ", 10), (2.0, 2), ("2.0", 2)])
def test_counts(value: Any, count: int) -> None:
    assert to_count(value) == count


@pytest.mark.parametrize("value", [None, True, 2.5, "2.5", "", "many", [1], {}, -1, "-1"])
def test_what_is_no_count(value: Any) -> None:
    with pytest.raises(BlockError) as caught:
        to_count(value)
    assert (caught.value.code, caught.value.retryable) == ("loop_count", False)
