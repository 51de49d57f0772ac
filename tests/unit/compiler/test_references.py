"""Cases of the language are in tests/vectors/references.json, see test_references_vectors.py."""

from __future__ import annotations

import pytest

from compiler.references import find, texts
from tests.support.cost import computes_within


def test_offsets_span_the_whole_reference() -> None:
    (found, env) = find("ab <x.y> ${KEY}")
    assert "ab <x.y> ${KEY}"[found.start : found.end] == "<x.y>"
    assert (found.key, env.key, env.env) == ("x.y", "${KEY}", True)


def test_texts_are_found_with_their_pointers() -> None:
    params = {"a": "x", "b": [{"c/d": "y"}, 3, "z"], "e": {"~": "w"}}
    assert list(texts(params, {"/b/2"})) == [
        ("/a", "x", False),
        ("/b/0/c~1d", "y", False),
        ("/b/2", "z", True),
        ("/e/~0", "w", False),
    ]


@pytest.mark.parametrize(
    "text", ["<a" * 200_000, '<a ?? "' * 100_000, "<a[0" * 100_000, "${" * 200_000, "<a?" * 100_000]
)
def test_hostile_text_costs_linear_time(text: str) -> None:
    with computes_within(2):
        find(text)
