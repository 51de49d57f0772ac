"""Docstrings of the product are sentences. `python -m tests.words` prints those that are not, with file and line."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.words.texts import ROOT, Text, no_sentences

# A ratchet: the docstrings of each room that are not rewritten yet. A number may only fall.
LEFT: dict[str, int] = {
    "executor": 1,
    "executor/blocks/sandbox": 2,
}


def room(place: str) -> str:
    """Return the folder of a place: of `executor` the room of a floor, else the part of a package."""
    *folders, _ = place.split("/")
    return "/".join(folders[: 3 if place.startswith("executor/") else 2])


def test_a_docstring_is_a_sentence() -> None:
    found = no_sentences()
    more = {name for name, count in Counter(room(one.place) for one in found).items() if count > LEFT.get(name, 0)}
    assert not more, "\n" + "\n".join(str(one) for one in found if room(one.place) in more)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Of the run.", "Of"),
        ("Whether it runs.", "Whether"),
        ("What a caller sees.", "What"),
        ("None: there is no such run.", "None:"),
        ("The run. None: there is no such run.", "None:"),
        ("Whatever it reads.", None),
        ("Return whether it runs, or None if there is no such run.", None),
    ],
)
def test_no_sentences_are_found(text: str, word: str | None) -> None:
    found = no_sentences([Text(ROOT / "x.py", 1, text)])
    assert [one.word for one in found] == ([] if word is None else [word])


@pytest.mark.parametrize(
    ("place", "name"), [("executor/kernel/store/tx.py:3", "executor/kernel/store"), ("server/app.py:1", "server")]
)
def test_rooms(place: str, name: str) -> None:
    assert room(place) == name
