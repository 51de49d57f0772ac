"""The text forms of node keys and wait ids, without a plan. With one, they are tested in test_graph.py."""

from __future__ import annotations

import pytest

from compiler.keys import format_wait, join_key, parse_wait, split_key


@pytest.mark.parametrize(
    ("node", "path", "text"),
    [("send", "", "send"), ("send", "review#5/fan[2]", "send@review#5/fan[2]"), ("fan:end", "a#0", "fan:end@a#0")],
)
def test_the_parts_of_a_key_make_its_text_and_are_found_in_it(node: str, path: str, text: str) -> None:
    assert join_key(node, path) == text
    assert split_key(text) == (node, path)


def test_the_id_of_a_wait_is_its_key_and_attempt() -> None:
    assert format_wait("ask@review#2", 11) == "ask@review#2!11"
    assert parse_wait("ask@review#2!11") == ("ask@review#2", 11)
    with pytest.raises(ValueError, match="invalid literal"):
        parse_wait("ask@review#2")
