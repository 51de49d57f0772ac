"""`schedule`: the trigger of runs that the clock starts. A version that is stored brings its schedules with it."""

from __future__ import annotations

from typing import Any

from compiler.catalog import BlockSpec, Finding, Params
from executor.blocks.types.shared_params import ENABLED, FILLED
from executor.errors import WeftError
from executor.kernel.handler.base import Context, Done
from executor.kernel.values import cron

_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "scheduled_at": {"type": "integer", "description": "The scheduled time, in Unix milliseconds"},
        "fired_at": {
            "type": "integer",
            "description": "Start of the run; later than scheduled_at if it was missed",
        },
    },
}


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


class Schedule:
    spec = BlockSpec(
        type="schedule",
        title="Schedule",
        description="Starts the workflow at set times. Returns the time and the fields of its input.",
        category="trigger",
        params={
            "type": "object",
            "required": ["cron"],
            "additionalProperties": False,
            "properties": {
                "cron": {
                    **FILLED,
                    "title": "Cron expression",
                    "description": "Minute, hour, day of the month, month, day of the week, such as 0 9 * * MON-FRI; "
                    "or @hourly, @daily, @weekly, @monthly, @yearly.",
                    "maxLength": cron.EXPRESSION_LENGTH_MAX,
                    "x-weft": "literal",
                    "x-ui": {"order": 1, "widget": "text"},
                },
                "tz": {
                    "type": "string",
                    "title": "Time zone",
                    "description": "A name such as Europe/Berlin. Daylight saving time is applied.",
                    "default": "UTC",
                    "maxLength": 100,
                    "x-weft": "literal",
                    "x-ui": {"order": 2, "widget": "text"},
                },
                "input": {
                    "type": "object",
                    "title": "Input",
                    "description": "Input of each run. References are not resolved.",
                    "x-weft": "literal",
                    "x-ui": {"order": 3, "widget": "json", "rows": 4},
                },
                "overlap": {
                    "enum": ["skip", "queue", "allow"],
                    "title": "If a run is still active",
                    "description": "What happens when the previous run of this schedule has not ended.",
                    "default": "skip",
                    "x-titles": {
                        "skip": "Skip this time",
                        "queue": "Start after it ends",
                        "allow": "Start another run",
                    },
                    "x-weft": "literal",
                    "x-ui": {"order": 4, "widget": "select"},
                },
                "catch_up": {
                    "enum": ["one", "none", "all"],
                    "title": "Missed runs",
                    "description": "What happens to times that passed while the server was stopped.",
                    "default": "one",
                    "x-titles": {"one": "Run once", "none": "Skip all", "all": "Run all, at most the last 100"},
                    "x-weft": "literal",
                    "x-ui": {"order": 5, "widget": "select", "advanced": True},
                },
                "enabled": {**ENABLED, "x-ui": {"order": 6, "widget": "boolean"}},
            },
        },
        trigger=True,
        by_document=True,
        inline=True,
        output_from=_output_of,
        check=_check,
        sentence="Starts at {cron} ({tz}) | Starts at set times",
        icon="schedule",
    )

    async def run(self, ctx: Context) -> Done:
        """The times of a run that was started by hand are now."""
        sent = ctx.input if isinstance(ctx.input, dict) else {}
        own = ctx.params.get("input") or {}
        return Done({"scheduled_at": ctx.now_ms, "fired_at": ctx.now_ms, **own, **sent})


block = Schedule()
