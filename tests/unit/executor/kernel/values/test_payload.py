import dataclasses
import datetime
import hashlib
import math
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.errors import BlockError
from executor.kernel.values.payload import (
    DEPTH_MAX,
    INLINE_MAX_BYTES,
    MISSING,
    SIZE_MAX_BYTES,
    copy,
    encode,
    render,
    split,
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_comes_back_equal(value: Any) -> None:
    assert orjson.loads(encode(value)) == value
    assert copy(value) == value


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_deepest_value_is_accepted_and_one_level_more_is_not() -> None:
    assert encode(deep(DEPTH_MAX)) == b"[" * DEPTH_MAX + b"1" + b"]" * DEPTH_MAX
    with pytest.raises(BlockError, match="nested more than 64 levels deep") as caught:
        encode(deep(DEPTH_MAX + 1))
    assert (caught.value.code, caught.value.retryable) == ("payload_invalid", False)
    with pytest.raises(BlockError, match="nested more than 64 levels deep"):
        encode(deep(5000))  # deeper than the encoder itself goes


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert orjson.loads(encode([[] for _ in range(1000)])) == [[]] * 1000


def test_a_list_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(BlockError) as caught:
        encode(loop)
    assert caught.value.code == "payload_invalid"


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, math.nan]}, r"at \$\.a\[1\] .*nan is not a JSON number"),
        ({"a": math.inf, "b": None}, r"\$\.a .*inf is not a JSON number"),
        ({"n": 2**64}, r"\$\.n .*does not fit in 64 bits"),
        ({1: 2}, "key is not text"),
        ({"when": datetime.datetime(2024, 1, 1)}, "datetime is not a JSON type"),
        ([Point(1)], "Point is not a JSON type"),
        (b"bytes", "bytes is not a JSON type"),
        ({"s": {1, 2}}, "set is not a JSON type"),
        ("\ud800", "not JSON"),
    ],
)
def test_what_is_not_json_is_refused_by_place(value: Any, message: str) -> None:
    with pytest.raises(BlockError, match=message) as caught:
        encode(value)
    assert (caught.value.code, caught.value.retryable) == ("payload_invalid", False)


def test_the_size_limit_is_exact() -> None:
    fits = "x" * (SIZE_MAX_BYTES - 2)
    assert len(encode(fits)) == SIZE_MAX_BYTES
    with pytest.raises(BlockError) as caught:
        encode(fits + "x")
    assert caught.value.code == "payload_too_large"


def test_outputs_over_the_inline_size_go_to_a_blob() -> None:
    small = b"x" * INLINE_MAX_BYTES
    assert split(small) == (small, None)
    assert split(small + b"y") == (None, hashlib.sha256(small + b"y").hexdigest())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a <b.c> ${X}", "a <b.c> ${X}"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (MISSING, ""),
    ],
)
def test_render(value: Any, text: str) -> None:
    assert render(value) == text


def test_copies_are_independent() -> None:
    original = {"a": [1]}
    copied = copy(original)
    copied["a"].append(2)
    assert original == {"a": [1]}
    empty: list[Any] = []
    assert copy(empty) == [] and copy(empty) is not empty


def test_what_is_encoded_has_no_memory_to_spare() -> None:
    """orjson leaves 4 KiB around each small text: a thousand runs with twenty of them each would hold 80 MiB of it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [encode({"n": i}) for i in range(1000)] + [encode("x" * 100_000)]
        assert tracemalloc.get_traced_memory()[0] - before < 250_000
        assert len(held) == 1001
    finally:
        tracemalloc.stop()
