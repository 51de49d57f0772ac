"""`durable`: runs a durable function (`compiler.tracing.durable`), which is registered by name, as those of `python`.
Without any there is no such block type. A document of a durable function has one such block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from compiler.catalog import BlockSpec
from compiler.signature import Unfit, write
from compiler.tracing.body import running
from compiler.tracing.durable import TYPE, DurableFunction, durables_of
from executor.blocks.durable.running import Running
from executor.blocks.types.continue_as_new import block as continue_as_new
from executor.blocks.types.params import function_params, invalid, lacking_function
from executor.errors import BlockError, NotDeterministic
from executor.kernel.handler.base import Block, Done, StepContext
from executor.kernel.handler.durable import ContinueAsNew
from executor.kernel.process.tracebacks import log_raised, traceback_of
from executor.kernel.run.attention import OtherCode, not_here
from executor.kernel.run.mismatch import CodeUnfit

YEAR_MS: Final = 31_536_000_000  # each step has a time limit of its own


class DurableBlock:
    """`functions`: by the names of documents."""

    def __init__(self, functions: Mapping[str, DurableFunction[Any, Any]]) -> None:
        self.functions = by_all_names(functions.values())
        # Read from the files now: they may change while the process runs.
        self._codes = {name: one.code for name, one in self.functions.items()}
        self.spec = BlockSpec(
            type=TYPE,
            title="Durable function",
            description=f"Runs a durable function of this server: {', '.join(sorted(functions))}.",
            category="action",
            params=_params(self.functions),
            undoes="undoes",
            effect="write",
            idempotent=True,  # its steps are what may not be repeated, and each has its own effect
            pauses=True,
            timeout_ms=YEAR_MS,
            sentence="Run {function} | Run a durable function",
            icon="code",
        )

    def lacks(self, params: dict[str, Any]) -> str | None:
        """See `executor.kernel.worker.missing`."""
        return lacking_function("durable function", params, self.functions)

    def has_other_code(self, request: Mapping[str, Any]) -> bool:
        """Return True if the function that a question of `OtherCode` is about has other code here than where it was
        asked. See `executor.kernel.worker.other_code`."""
        code = self._codes.get(str(request.get("function")))
        return code is not None and code != request.get("code")

    async def run(self, ctx: StepContext) -> Done:
        """Output what the function returns. Raises BlockError: `function_failed`, or the error of a step that the
        function does not catch."""
        name = str(ctx.params.get("function"))
        durable = self.functions.get(name)
        if durable is None:
            raise not_here(name, self.functions)
        of_run = str(ctx.params.get("code") or durable.code)
        try:
            arguments = durable.signature.arguments(ctx.params.get("arguments") or {})
        except Unfit as error:
            if of_run != durable.code:
                raise _other_code(durable, of_run, CodeUnfit(error.message)) from None
            raise invalid(f"{durable.called}: {error.message}") from None
        calls = await ctx.durable_calls(durable)
        body: Running = calls.body or Running(ctx, calls, durable, of_run != durable.code)
        calls.body = body
        body.attempt.own = ctx.own
        token = running.set(body)
        try:
            return Done(write(await calls.run(lambda: durable.function(**arguments))))
        except ContinueAsNew as ended:
            return await continue_as_new.run(replace(ctx, params={"input": ended.input}))
        except CodeUnfit as error:
            raise _other_code(durable, of_run, error) from error
        except BlockError as error:
            raised = error.__cause__ if isinstance(error.__cause__, NotDeterministic) else error  # with the same text
            error.traceback = traceback_of(raised, durable.function) or error.traceback
            error.retryable = False
            raise
        except Unfit as error:
            message = f"{durable.called} returned {error.message}"
            raise BlockError(message, code="output_invalid", retryable=False) from error
        except (Exception, SystemExit) as error:
            message, traceback = (
                f"{durable.called}: {type(error).__name__}: {error}",
                traceback_of(error, durable.function),
            )
            log_raised(durable.called, f"run {ctx.run_id}, block {ctx.key}", error)
            raise BlockError(message, code="function_failed", retryable=False, traceback=traceback) from error
        finally:
            running.reset(token)
            body.attempt.own = None  # the code may stay in memory


def _params(functions: Mapping[str, Any]) -> dict[str, Any]:
    params = function_params(functions, "A function with @weft.durable.")
    about = "A hash of the code with which runs begin. A change of the code makes another version."
    code = {"type": "string", "title": "Code", "description": about, "x-ui": {"order": 3, "advanced": True}}
    about = "Id of the block with the function that this one continues when the run is cancelled."
    shown = {"order": 4, "widget": "text", "advanced": True}
    undoes = {"type": "string", "title": "Undoes", "description": about, "x-ui": shown, "x-weft": "literal"}
    return {**params, "properties": {**params["properties"], "code": code, "undoes": undoes}}


def _other_code(durable: DurableFunction[Any, Any], of_run: str, error: CodeUnfit) -> OtherCode:
    file, line = durable.defined
    where = f"{durable.called} ({file}:{line})"
    if durable.code == of_run:
        why = f"The run began with the code that is here: something in {where} is not the same each time."
    else:
        why = f"The run began with other code of {where}."
    request = {"function": durable.called, "code": durable.code, "code_of_run": of_run, "file": file, "line": line}
    return OtherCode(
        f"The code of {durable.called} does not fit this run", f"{error.message.rstrip('.')}. {why}", request
    )


def by_all_names(functions: Iterable[DurableFunction[Any, Any]]) -> dict[str, DurableFunction[Any, Any]]:
    """Return the functions by their names in documents, and those that they had before. Raises ValueError."""
    found: dict[str, DurableFunction[Any, Any]] = {}
    for one in functions:
        for name in (one.called, *one.aliases):
            if found.setdefault(name, one) is not one:
                raise ValueError(f"two durable functions have the name {name!r}: look at their aliases")
    return found


def durable_blocks(values: Iterable[Any]) -> list[Block]:
    """Return the block type for the durable functions among these and those that they call; none without any. Raises
    ValueError, DefinitionError."""
    found = durables_of(values)
    return [DurableBlock(found)] if found else []
