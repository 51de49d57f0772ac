"""Every error weft raises on purpose.

WeftError                      code, message, hint, pointer into the request
├── NotFound                   run_not_found, workflow_not_found, wait_not_found, node_not_found
├── Conflict                   idempotency key reused for another request, run already ended, ...
│   ├── AlreadyAnswered        a wait takes one answer
│   └── Refused                a durable function refused an update
├── BadRequest                 the caller's fault, with a pointer
│   ├── NoWorkflow             JSON that is not a workflow
│   ├── AnswerInvalid          the answer does not fit the form; the wait is still open
│   ├── InputInvalid           run input does not fit the workflow's input schema
│   ├── CronInvalid            not a cron expression
│   └── ZoneUnknown            not a time zone of this machine
├── LimitExceeded              a bound of docs/reference/limits.md
├── QueueFull                  too many runs wait for a worker; later there is room
├── SignInRequired             only a user who has signed in can answer this
├── NotYours                   this is for others to answer
├── FileNotYours               a value names a file that the one who sends it may not use
├── DeliveryRefused            a request to a webhook does not prove that it may start a run
├── WebhookDisabled            the webhook is disabled
├── WebhookNotReady            the workflow of the webhook cannot start now
├── BlockError                 a block's attempt failed; retryable or not
│   ├── StepFailed             a step or child run that a durable function awaits has failed
│   │   └── StepTimeout        each try of the step took longer than its timeout
│   └── SandboxError           JavaScript failed or was stopped; never retried
├── Fenced                     another worker owns the run now: drop it, do nothing
├── Lost                       the process of an attempt is gone; how far it got is unknown
├── Unheard                    the run cannot end: its worker has not processed the cancel request yet
├── StoreError
│   ├── ReadOnly               the server is read-only
│   ├── DatabaseWriteFailed    retries are used up
│   ├── DatabaseUnavailable    the file cannot be read or written
│   │   ├── DatabaseDown       its server does not answer
│   │   ├── DatabaseFull       there is no room on its disk
│   │   ├── DatabaseDamaged    its content is not what was written
│   │   └── DatabaseReplaced   it was deleted or replaced while it was open
│   ├── ForeignDatabase        the file is of another program
│   ├── BackupUnusable         the file of a backup is not a database of weft
│   ├── NestedTransaction      a bug of ours
│   ├── WrongKey               this process has another key than the database
│   ├── SchemaTooNew           the file was written by a newer weft
│   └── SchemaUnreleased       the file was written by a weft before its first release
├── QueryRefused               SQL of `weft sql` and exports that only reading or the time limit refuses
└── CorruptJournal             a bug of ours or a damaged file: the run loop stops and logs it

NotDeterministic, a BaseException: a durable function did what it cannot do again in the same way.
server/http/errors.py has their HTTP statuses.
Diagnostics about a document are not errors but data: compiler.diagnostics.
"""

from __future__ import annotations

import errno
import socket
from typing import Any, Final, Literal


class WeftError(Exception):
    """Something went wrong."""

    code = "error"

    def __init_subclass__(cls, code: str | None = None) -> None:
        cls.code = code or cls.code

    def __init__(
        self, message: str = "", *, code: str | None = None, hint: str = "", pointer: str | None = None, **extra: Any
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.code = code or type(self).code
        self.hint = hint
        self.pointer = pointer
        self.extra = extra
        super().__init__(self.message)
        if hint:
            self.add_note(hint)  # below the message where Python prints it


class NotFound(WeftError, code="not_found"):
    """There is no such thing here."""


class Conflict(WeftError, code="conflict"):
    """The request does not fit the present state."""


class AlreadyAnswered(Conflict, code="already_answered"):
    """This wait was answered before."""


class Refused(Conflict, code="update_refused"):
    """The durable function has refused this update."""


class BadRequest(WeftError, code="bad_request"):
    """The request is not valid."""


class NoWorkflow(BadRequest, code="format_unknown"):
    """This JSON is not a workflow."""


class AnswerInvalid(BadRequest, code="answer_invalid"):
    """The answer does not fit the form; the wait is still open."""


class SignInRequired(WeftError, code="sign_in_required"):
    """Only someone who has signed in can answer this."""


class NotYours(WeftError, code="not_yours"):
    """This is for others to answer."""


class FileNotYours(WeftError, code="file_not_yours"):
    """A value names a file that the one who sends it may not use."""


class InputInvalid(BadRequest, code="input_invalid"):
    """The input does not fit the workflow's input schema."""


class CronInvalid(BadRequest, code="cron_invalid"):
    """This is no cron expression."""


class ZoneUnknown(BadRequest, code="timezone_unknown"):
    """There is no such time zone."""


class LimitExceeded(WeftError, code="limit_exceeded"):
    """A limit was reached."""


class QueueFull(WeftError, code="queue_full"):
    """Too many runs wait for a worker."""


class DeliveryRefused(WeftError, code="signature_invalid"):
    """The request does not prove that it may start a run."""


class WebhookDisabled(WeftError, code="webhook_disabled"):
    """This webhook is switched off."""


class WebhookNotReady(WeftError, code="webhook_not_ready"):
    """The workflow of this webhook cannot be started now."""


class BlockError(WeftError, code="block_failed"):
    """A block's attempt failed. `retry_at_ms`: the earliest time the other side asked for (Retry-After). `deferred`:
    the attempt need not count, because the other side asked for a later try, or because it was not begun. `uncertain`:
    the other side may have carried out the request, so another attempt may do it twice. `traceback`: the frames of the
    user's files, see executor/kernel/process/tracebacks.py. `type`: the exception that a step raised; `arguments`: its
    args, if the step declares it."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "block_failed",
        retryable: bool = True,
        retry_at_ms: int | None = None,
        deferred: Literal["asked", "not_begun"] | None = None,
        uncertain: bool = False,
        hint: str = "",
        traceback: str = "",
        type: str = "",
        arguments: list[Any] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(message, code=code, hint=hint, **extra)
        self.type = type
        self.arguments = arguments
        self.retryable = retryable
        self.retry_at_ms = retry_at_ms
        self.deferred = deferred
        self.uncertain = uncertain
        self.traceback = traceback


class StepFailed(BlockError):
    """A step or a child run that a durable function awaits has failed. `code` and `message` are those of its error,
    `type` the exception that the step raised, `traceback` the frames of the user's files: they are the same each time
    the function is entered."""


class StepTimeout(StepFailed, TimeoutError, code="step_timeout"):
    """A step that a durable function awaits took longer than its timeout, each time that it was tried."""


class NotDeterministic(BaseException):
    """The code of a durable function did what it cannot do again in the same way. `except Exception` lets it pass."""


class SandboxError(BlockError, code="expression_failed"):
    """JavaScript or Python failed or was stopped. Never retried: the same text with the same values fails again.

    Codes: `expression_failed`, `expression_timeout`, `expression_memory`, and `code_…` of the same three for programs;
    `python_missing` for a program in Python on a machine without it; `number_inexact` for an integer that JavaScript
    would change.
    `extra` has `index` (which expression of the list) or `stdout` (what a program printed before it failed).
    """

    def __init__(self, message: str, *, code: str, hint: str = "", **extra: Any) -> None:
        super().__init__(message, code=code, retryable=False, hint=hint, **extra)


class Fenced(WeftError, code="fenced"):
    """Another worker owns this run now."""


class Lost(WeftError, code="attempt_lost"):
    """The process that ran the attempt is gone. `together`: others were lost with it, so it need not be the cause.
    `ask`: the effect of an earlier attempt was searched for in vain, so a person has to decide."""

    def __init__(self, message: str = "", *, together: bool = False, ask: bool = False) -> None:
        super().__init__(message)
        self.together = together
        self.ask = ask


class Unheard(WeftError, code="unheard"):
    """The run has not processed its cancel request yet."""


class StoreError(WeftError, code="store_error"):
    """The database failed."""


class DatabaseWriteFailed(StoreError, code="db_write_failed"):
    """The write failed after all retries."""


class DatabaseUnavailable(StoreError, code="db_unavailable"):
    """The database cannot be read or written."""


class DatabaseDown(DatabaseUnavailable):
    """The database server cannot be reached, or is about to start or to stop: it may be there in a moment."""


class DatabaseFull(DatabaseUnavailable, code="db_full"):
    """There is no room on the disk of the database."""


class DatabaseDamaged(DatabaseUnavailable, code="db_damaged"):
    """The database is damaged."""


class DatabaseReplaced(DatabaseUnavailable, code="db_replaced"):
    """The database was deleted or replaced while it was open."""


class ReadOnly(StoreError, code="read_only"):
    """This server is read-only."""


class ForeignDatabase(StoreError, code="db_foreign"):
    """The file is a database of another program."""


class BackupUnusable(StoreError, code="backup_unusable"):
    """The file is not a database of weft."""


class NestedTransaction(StoreError, code="nested_transaction"):
    """A transaction was opened inside another one."""


class WrongKey(StoreError, code="wrong_key"):
    """This process has another secret key than the database."""


class SchemaTooNew(StoreError, code="schema_too_new"):
    """The database was written by a newer version of weft."""


class SchemaUnreleased(StoreError, code="schema_unreleased"):
    """The database was written by a version of weft from before its first release."""

    def __init__(self, name: str, schema: int, least: int) -> None:
        once = f"open it once with the last version before 0.1.0, which brings it to schema {least} or later, then "
        super().__init__(
            f"{name} has schema {schema} of a weft before its first release",
            hint=f"{once if schema < least else ''}copy it to a new database with `weft migrate-store OLD NEW`",
        )
        self.old_enough = schema >= least


class QueryRefused(WeftError, code="query_refused"):
    """The query is not possible."""


class CorruptJournal(WeftError, code="corrupt_journal"):
    """The journal does not fold."""


def store_closed() -> StoreError:
    """Return the error of a closed engine."""
    hint = "use the engine inside its `async with weft.open(...)` block"
    return StoreError("the engine is closed", code="store_closed", hint=hint)


RESTORE = "restore a backup: `weft restore FILE`"  # the hint for damaged data


OUT_OF_RESOURCES: Final = "out_of_resources"
_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


def is_exhausted(error: BaseException) -> bool:
    """Return True if `error` or a cause of it means that this machine has no file descriptors or no memory left. Then
    nothing was started, and the other side did not fail."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, MemoryError):
            return True
        if isinstance(one, socket.gaierror):
            if one.errno == socket.EAI_MEMORY:
                return True
        elif isinstance(one, OSError) and one.errno in _ERRNOS:
            return True
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
        todo += [one.__cause__, one.__context__]
    return False


def not_begun(what: str, error: BaseException) -> BlockError:
    """Return the failure of an attempt that could not start on this machine. It does not count as an attempt."""
    message = f"{what}: not started, because this server has no free file descriptors, threads or memory: {error}"
    hint = "it is retried after a pause; if this persists, raise the limits of the server process (ulimit -n)"
    return BlockError(message, code=OUT_OF_RESOURCES, deferred="not_begun", hint=hint)
