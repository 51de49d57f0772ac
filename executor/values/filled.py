"""Text that remembers which parts of it the author wrote and which came from references.

For params whose text has a syntax of its own, such as a list with commas: a comma in a name is not part of that syntax.
"""

from __future__ import annotations


class Filled(str):
    """`data`: (start, end) of each part that came from a reference, in order."""

    __slots__ = ("data",)
    data: tuple[tuple[int, int], ...]

    def __new__(cls, text: str, data: tuple[tuple[int, int], ...]) -> Filled:
        made = super().__new__(cls, text)
        made.data = data
        return made


def written(text: str) -> list[bool]:
    """For each character: did the author write it? Plain text counts as written."""
    by_author = [True] * len(text)
    for start, end in text.data if isinstance(text, Filled) else ():
        by_author[start:end] = [False] * (end - start)
    return by_author
