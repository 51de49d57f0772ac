"""One text of each statement, for every database.

Statements are in the SQL that SQLite and PostgreSQL have in common, with named parameters. Where the two differ, a
statement has a piece, written `$name(arguments)`, and each database defines its text. `statements.py` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_PIECE = re.compile(r"\$(\w+)(?:\(([^()]*)\))?")


class Texts(dict[str, str]):
    """Each statement as this database is asked it, made the first time it is asked for. There are as many as the
    topics have, with and without each of their conditions."""

    def __init__(self, pieces: Mapping[str, Callable[..., str]]) -> None:
        super().__init__()
        self._pieces = pieces

    def __missing__(self, sql: str) -> str:
        text = self.finished(_PIECE.sub(self._piece, sql))
        self[sql] = text
        return text

    def finished(self, sql: str) -> str:
        """With all its pieces. For a database that writes something else in another way."""
        return sql

    def _piece(self, found: re.Match[str]) -> str:
        arguments = [] if found[2] is None else [each.strip() for each in found[2].split(",")]
        return self._pieces[found[1]](*arguments)
