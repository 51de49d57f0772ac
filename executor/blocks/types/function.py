"""`function`: a program in the sandbox, in JavaScript or Python."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from msgspec import json

from compiler.catalog import Finding, Params
from executor.blocks.sandbox import Language
from executor.blocks.sandbox.exchange import PLACE
from executor.blocks.sandbox.missing import missing
from executor.blocks.services import call_elsewhere, services_of
from executor.blocks.types.declared import block_type
from executor.blocks.types.file_contents import with_contents
from executor.blocks.types.params import FILLED, TypedParams, invalid, param
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import Bound

_LOOK_S = 0.5
_STDOUT_SHOWN = 500
_NAMES: Final[Mapping[Language, str]] = {"javascript": "JavaScript", "python": "Python"}


def _check(params: Params) -> tuple[Finding, ...]:
    if params.get("language") != "python" or missing() is not None:  # then the compiler reports that
        return ()
    from executor.blocks.sandbox.python.component import is_being_built, is_built  # and with it wasmtime

    message = "has code in Python, which is not built on this machine: it fails."
    hint = "Run once, as the user of the server: weft python build."
    return (
        ()
        if is_built() or is_being_built()
        else (Finding("python_missing", "/language", message, hint, of_block=True),)
    )


class _Params(TypedParams):
    code: Any = param(
        "Code",
        "The body of a function. Return the result; console.log and print write to stdout.",
        required=True,
        widget="code",
        rows=12,
        weft="code",
        type="string",
        pattern=FILLED,
    )
    language: str = param(
        "Language",
        "JavaScript, or Python 3.14 with most of its standard library.",
        default="javascript",
        weft="literal",
        choices={"javascript": "JavaScript", "python": "Python"},
    )
    timeout_s: float = param(
        "Timeout (seconds)",
        "The block fails when the code runs longer.",
        default=5,
        advanced=True,
        exclusiveMinimum=0,
        maximum=60,
    )
    files: Literal["value", "text", "base64"] = param(
        "Files",
        "What the code has of files that it refers to: also their .text or .base64.",
        default="value",
        advanced=True,
        weft="literal",
        choices={"value": "Name and size", "text": "Content as text", "base64": "Content as base64"},
    )


@block_type(
    type="function",
    title="Function",
    description="Runs JavaScript or Python in a sandbox without network or file access.",
    category="action",
    params=_Params.json_schema,
    output={"type": "object", "properties": {"result": {}, "stdout": {"type": "string"}}},
    runners=("inline", "process", "dask"),
    check=_check,
    sentence="{code} | Run code",
    icon="code",
)
async def block(ctx: StepContext) -> Done:
    """Raises SandboxError; its hint has the text that the program printed before."""
    params = _Params(ctx.params)
    code = Bound(params.code, {}) if isinstance(params.code, str) else params.code
    if not isinstance(code, Bound):
        raise invalid("code must be a program")
    code = await with_contents(ctx, code, params.files)
    language: Language = "python" if params.language == "python" else "javascript"
    if language == "python":
        await _python_built(ctx)
    try:
        # The seed does not depend on the attempt: a repeated attempt draws the same random numbers.
        result, stdout = await services_of(ctx).sandbox.run_code(
            code,
            now_ms=ctx.now_ms,
            seed=ctx.idempotency_key,
            timeout_ms=round(params.timeout_s * 1000),
            owner=ctx.run_id,
            waiting=ctx.queueing,
            elsewhere=None if ctx.runner == "inline" else partial(_elsewhere, ctx, _NAMES[language]),
            language=language,
        )
    except BlockError as error:
        printed = str(error.extra.get("stdout") or "").strip()
        if printed:
            ctx.log(printed)
        if printed and not error.hint:
            error.hint = f"printed before: {printed[-_STDOUT_SHOWN:]}"
        raise
    if stdout:
        ctx.log(stdout)
    return Done({"result": result, "stdout": stdout})


async def _python_built(ctx: StepContext) -> None:
    """Wait for a build that has begun: this is the first use on this machine."""
    from executor.blocks.sandbox.python.component import is_being_built, is_built  # and with it wasmtime

    if is_built() or not is_being_built():
        return
    ctx.log("Python is being built on this machine, once. This takes about half a minute; then the program runs.")
    while is_being_built() and not is_built():  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(_LOOK_S)


async def _elsewhere(ctx: StepContext, name: str, arguments: Mapping[str, Any]) -> Any:
    """Raises Lost."""
    return await call_elsewhere(ctx, PLACE, name, json.encode(arguments))
