from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.errors import BlockError
from executor.kernel.values.coerce import to_items
from executor.kernel.values.payload import encode


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ([1, 2], [1, 2]),
        ([], []),
        ({}, []),
        ({"a": 1, "b": [2]}, [["a", 1], ["b", [2]]]),
        ('[{"a":1}]', [{"a": 1}]),
        ('{"k":1}', [["k", 1]]),
        ("['u','v']", ["u", "v"]),
        ("""['it\\'s', 'say "hi"', "it's", 'a\\\\b']""", ["it's", 'say "hi"', "it's", "a\\b"]),
        ("[]", []),
    ],
)
def test_forms(value: Any, items: list[Any]) -> None:
    assert to_items(value) == items


@pytest.mark.parametrize("value", ["", "  ", None, 3, True, "3", '"text"', "a, b", "['open"])
def test_what_is_no_collection(value: Any) -> None:
    with pytest.raises(BlockError) as caught:
        to_items(value)
    assert (caught.value.code, caught.value.retryable) == ("loop_items", False)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_single_quoted_lists_read_as_written(texts: list[str]) -> None:
    quoted = ["'" + encode(t).decode()[1:-1].replace('\\"', '"').replace("'", "\\'") + "'" for t in texts]
    assert to_items("[" + ",".join(quoted) + "]") == texts
