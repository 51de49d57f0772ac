"""Errors in workflows in Python, found before there is a document."""

from __future__ import annotations


class BuildError(ValueError):
    """`message` begins with the place: the id of the block, the line of the source. `hint`: what to write."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint
