"""`durable`: runs a durable function (`compiler.tracing.durable`), which is registered by name, as those of `python`.
Without any there is no such block type. A document of a durable function has one such block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from compiler.catalog import BlockSpec
from compiler.signature import Unfit, write
from compiler.tracing.body import running
from compiler.tracing.durable import TYPE, Durable, durables_of
from executor.blocks.durable.running import Running
from executor.blocks.types.params import function_params, invalid, lacking_function
from executor.errors import BlockError
from executor.kernel.handler.base import Block, Context, Done
from executor.kernel.process.tracebacks import log_raised, traceback_of

YEAR_MS: Final = 31_536_000_000  # each step has a time limit of its own


class DurableBlock:
    """`functions`: by the names of documents."""

    def __init__(self, functions: Mapping[str, Durable[Any, Any]]) -> None:
        self._functions = dict(functions)
        self.spec = BlockSpec(
            type=TYPE,
            title="Durable function",
            description=f"Runs a durable function of this server: {', '.join(sorted(functions))}.",
            category="action",
            params=function_params(functions, "A function with @weft.durable."),
            effect="write",
            idempotent=True,  # its steps are what may not be repeated, and each has its own effect
            pauses=True,
            timeout_ms=YEAR_MS,
            sentence="Run {function} | Run a durable function",
            icon="code",
        )

    def lacks(self, params: dict[str, Any]) -> str | None:
        """See `executor.kernel.worker.missing`."""
        return lacking_function("durable function", params, self._functions)

    async def run(self, ctx: Context) -> Done:
        """Output what the function returns. Raises BlockError: `function_failed`, or the error of a step that the
        function does not catch."""
        durable = self._functions.get(str(ctx.params.get("function")))
        if durable is None:
            raise invalid(f"there is no durable function {ctx.params.get('function')!r} here")
        try:
            arguments = durable.signature.arguments(ctx.params.get("arguments") or {})
        except Unfit as error:
            raise invalid(f"{durable.called}: {error.message}") from None
        calls = await ctx.durable_calls()
        token = running.set(Running(ctx, calls))
        try:
            return Done(write(await calls.run(lambda: durable.function(**arguments))))
        except BlockError as error:
            error.traceback = traceback_of(error, durable.function) or error.traceback
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


def durable_blocks(values: Iterable[Any]) -> list[Block]:
    """Return the block type for the durable functions among these and those that they call; none without any. Raises
    ValueError, TraceError."""
    found = durables_of(values)
    return [DurableBlock(found)] if found else []
