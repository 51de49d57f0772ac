"""`schedule`: the trigger of runs that the clock starts. A version that is stored brings its schedules with it."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ENABLED, FILLED, TypedParams, param, shape
from executor.errors import WeftError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values import cron

_OUTPUT: dict[str, Any] = shape(
    scheduled_at={"type": "integer", "description": "The scheduled time, in Unix milliseconds"},
    fired_at={
        "type": "integer",
        "description": "Start of the run; later than scheduled_at if it was missed",
    },
)


def _output_of(params: Params) -> dict[str, Any]:
    """The fields of `input` have no types: their values are known only in a run."""
    fixed = params.get("input")
    fields: dict[str, Any] = {name: {} for name in fixed} if isinstance(fixed, dict) else {}
    return {**_OUTPUT, "properties": {**fields, **_OUTPUT["properties"]}, "additionalProperties": True}


def _check(params: Params) -> tuple[Finding, ...]:
    expression, zone = params.get("cron"), params.get("tz", "UTC")
    if not isinstance(expression, str) or not expression.strip() or not isinstance(zone, str):
        return ()  # the schema checks it
    try:
        cron.parse(expression, zone)
    except WeftError as error:
        return (Finding(error.code, error.pointer or "", error.message, error.hint),)
    return ()


class _Params(TypedParams, literal=True):
    cron: str = param(
        "Cron expression",
        "Minute, hour, day of the month, month, day of the week, such as 0 9 * * MON-FRI; or "
        "@hourly, @daily, @weekly, @monthly, @yearly.",
        required=True,
        pattern=FILLED,
        maxLength=cron.EXPRESSION_LENGTH_MAX,
    )
    tz: str = param(
        "Time zone", "A name such as Europe/Berlin. Daylight saving time is applied.", default="UTC", maxLength=100
    )
    input: dict[str, Any] | None = param(
        "Input", "Input of each run. References are not resolved.", widget="json", rows=4
    )
    overlap: str = param(
        "If a run is still active",
        "What happens when the previous run of this schedule has not ended.",
        default="skip",
        choices={"skip": "Skip this time", "queue": "Start after it ends", "allow": "Start another run"},
    )
    catch_up: str = param(
        "Missed runs",
        "What happens to times that passed while the server was stopped.",
        default="one",
        advanced=True,
        choices={"one": "Run once", "none": "Skip all", "all": "Run all, at most the last 100"},
    )
    enabled: bool = ENABLED


@block_type(
    type="schedule",
    title="Schedule",
    description="Starts the workflow at set times. Returns the time and the fields of its input.",
    category="trigger",
    params=_Params.json_schema,
    trigger=True,
    by_document=True,
    inline=True,
    output_from=_output_of,
    check=_check,
    sentence="Starts at {cron} ({tz}) | Starts at set times",
    icon="schedule",
)
async def block(ctx: StepContext) -> Done:
    """The times of a run that was started by hand are now."""
    sent = ctx.input if isinstance(ctx.input, dict) else {}
    own = _Params(ctx.params).input or {}
    return Done({"scheduled_at": ctx.now_ms, "fired_at": ctx.now_ms, **own, **sent})
