"""One text of each statement, and what a database makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from executor.kernel.store.dialect import Texts

PIECES: dict[str, Callable[..., str]] = {
    "list": lambda name: f"any({name})",
    "two": lambda a, b: f"{a}+{b}",
    "now": lambda: "clock()",
}


class Shouting(Texts):
    def finished(self, sql: str) -> str:
        return sql.upper()


def test_pieces_are_put_in_their_places() -> None:
    texts = Texts(PIECES)
    assert texts["SELECT 1"] == "SELECT 1"
    assert texts["a IN $list(:ids) AND $two(b.head, :c) = $now"] == "a IN any(:ids) AND b.head+:c = clock()"


def test_a_text_is_made_once_and_finished_with_its_pieces() -> None:
    texts = Shouting(PIECES)
    assert texts["select $now"] is texts["select $now"] == "SELECT CLOCK()"
    assert len(texts) == 1


def test_an_unknown_piece_is_a_bug() -> None:
    with pytest.raises(KeyError, match="nothing"):
        Texts(PIECES)["SELECT $nothing"]
