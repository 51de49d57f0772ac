"""Every error weft raises on purpose.

WeftError                      code, message; `status` is what HTTP says
├── NotFound                   run_not_found, workflow_not_found, wait_not_found, node_not_found
├── Conflict                   idempotency key reused for another request, run already ended, ...
│   └── AlreadyAnswered        a wait takes one answer
├── BadRequest                 the caller's fault, with a pointer
│   ├── NoWorkflow             JSON that is not a workflow
│   ├── AnswerInvalid          the answer does not fit the form; the wait is still open
│   └── InputInvalid           run input does not fit the workflow's input schema
├── LimitExceeded              a bound of docs/reference/limits.md
├── BlockError                 a block's attempt failed; retryable or not
├── Fenced                     another worker owns the run now: drop it, do nothing
├── Unheard                    the run cannot end: it was told to cancel and has not heard of it
├── StoreError
│   ├── DatabaseWriteFailed    retries are used up
│   ├── DatabaseUnavailable    the file cannot be read or written
│   │   ├── DatabaseFull       there is no room on its disk
│   │   ├── DatabaseDamaged    its content is not what was written
│   │   └── DatabaseReplaced   it was deleted or replaced while it was open
│   ├── ForeignDatabase        the file is of another program
│   ├── NestedTransaction      a bug of ours
│   └── SchemaTooNew           the file was written by a newer weft
└── CorruptJournal             a bug of ours or a damaged file: the run loop stops and says so

Diagnostics about a document are not errors but data: compiler.diagnostics.
"""

from __future__ import annotations

from typing import Any, Literal


class WeftError(Exception):
    """Something went wrong."""

    code = "error"
    status = 500

    def __init__(
        self, message: str = "", *, code: str | None = None, hint: str = "", pointer: str | None = None, **extra: Any
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.code = code or type(self).code
        self.hint = hint
        self.pointer = pointer
        self.extra = extra
        super().__init__(self.message)


class NotFound(WeftError):
    """There is no such thing here."""

    code = "not_found"
    status = 404


class Conflict(WeftError):
    """The request does not fit the present state."""

    code = "conflict"
    status = 409


class AlreadyAnswered(Conflict):
    """This wait was answered before."""

    code = "already_answered"


class BadRequest(WeftError):
    """The request is not valid."""

    code = "bad_request"
    status = 400


class NoWorkflow(BadRequest):
    """This JSON is not a workflow."""

    code = "format_unknown"
    status = 422


class AnswerInvalid(BadRequest):
    """The answer does not fit the form; the wait is still open."""

    code = "answer_invalid"
    status = 422


class InputInvalid(BadRequest):
    """The input does not fit the workflow's input schema."""

    code = "input_invalid"
    status = 422


class LimitExceeded(WeftError):
    """A limit was reached."""

    code = "limit_exceeded"
    status = 413


class BlockError(WeftError):
    """A block's attempt failed. `retry_at_ms`: the earliest time the other side asked for (Retry-After). `deferred`:
    the attempt need not count, because the other side asked to come later, or because it was not begun."""

    code = "block_failed"
    status = 502

    def __init__(
        self,
        message: str,
        *,
        code: str = "block_failed",
        retryable: bool = True,
        retry_at_ms: int | None = None,
        deferred: Literal["asked", "not_begun"] | None = None,
        hint: str = "",
        **extra: Any,
    ) -> None:
        super().__init__(message, code=code, hint=hint, **extra)
        self.retryable = retryable
        self.retry_at_ms = retry_at_ms
        self.deferred = deferred


class Fenced(WeftError):
    """Another worker owns this run now."""

    code = "fenced"
    status = 409


class Unheard(WeftError):
    """The run has not processed its cancel request yet."""

    code = "unheard"
    status = 409


class StoreError(WeftError):
    """The database failed."""

    code = "store_error"
    status = 503


class DatabaseWriteFailed(StoreError):
    """The write failed after all retries."""

    code = "db_write_failed"


class DatabaseUnavailable(StoreError):
    """The database cannot be read or written."""

    code = "db_unavailable"


class DatabaseFull(DatabaseUnavailable):
    """There is no room on the disk of the database."""

    code = "db_full"
    status = 507


class DatabaseDamaged(DatabaseUnavailable):
    """The database is damaged."""

    code = "db_damaged"


class DatabaseReplaced(DatabaseUnavailable):
    """The database was deleted or replaced while it was open."""

    code = "db_replaced"


class ForeignDatabase(StoreError):
    """The file is a database of another program."""

    code = "db_foreign"


class NestedTransaction(StoreError):
    """A transaction was opened inside another one."""

    code = "nested_transaction"
    status = 500


class SchemaTooNew(StoreError):
    """The database was written by a newer version of weft."""

    code = "schema_too_new"


class CorruptJournal(WeftError):
    """The journal does not fold."""

    code = "corrupt_journal"
