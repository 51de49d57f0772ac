"""The errors of queries, in words for the author of the workflow."""

from __future__ import annotations

from executor.blocks.databases.statement import where
from executor.errors import BlockError

READ_ONLY_HINT = "turn off Read only in the block if it is to change data"


def failed(
    query: str, message: str, *, position: int | None = None, retryable: bool = False, hint: str = ""
) -> BlockError:
    """Return the error of a query that the database refused; `position` is that of a character counted from 0."""
    at = "" if position is None else f" at {where(query, position)}"
    return BlockError(
        f"the database refused the query{at}: {message}", code="sql_failed", retryable=retryable, hint=hint
    )


def changes_data(detail: str = "") -> BlockError:
    message = f"the query changes data, but the block only reads{f': {detail}' if detail else ''}"
    return BlockError(message, code="sql_refused", retryable=False, hint=READ_ONLY_HINT)


def not_permitted(what: str) -> BlockError:
    return BlockError(f"a query must not {what}", code="sql_refused", retryable=False)


def out_of_time(seconds: float) -> BlockError:
    message = f"the query took longer than {seconds:g} s and was stopped; it has changed nothing"
    return BlockError(
        message, code="sql_timeout", retryable=False, hint="add an index, or raise timeout_s of the block"
    )


def unreachable(what: str, message: str, kind: str = "sql") -> BlockError:
    return BlockError(f"no connection to {what}: {message}", code=f"{kind}_connection", retryable=True)


def bad_parameter(name: str, message: str) -> BlockError:
    return BlockError(f"parameter {name!r}: {message}", code="params_invalid", retryable=False)


def crashed(how: str) -> BlockError:
    message = f"the process that ran the query ended: {how}; it has changed nothing"
    hint = "the next query has a new process; if this persists, check the file with PRAGMA integrity_check"
    return BlockError(message, code="sql_crashed", retryable=True, hint=hint)
