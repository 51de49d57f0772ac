"""`wait`: pauses for a time, or until a time. The pause is a row in the database, so it survives restarts."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime

from compiler.catalog import Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, invalid, param
from executor.kernel.handler.base import StepContext, Suspend


def _check(params: Params) -> tuple[Finding, ...]:
    has = [name for name in ("seconds", "until") if params.get(name) not in (None, "")]
    if not has:
        return (Finding("required", "/seconds", "Seconds is required, or a date and time in Until."),)
    if len(has) == 2:
        return (Finding("param_invalid", "/until", "A wait has seconds or a date and time, not both."),)
    return ()


class _Params(TypedParams):
    seconds: float | None = param("Seconds", "How long to wait.", minimum=0, maximum=316224000)
    until: str | None = param("Until", "A date and time instead, such as 2027-01-31T09:00:00Z. Default time zone: UTC.")


@block_type(
    type="wait",
    title="Wait",
    description="Pauses for a number of seconds, or until a date and time.",
    category="flow",
    pauses=True,
    params=_Params.json_schema,
    check=_check,
    sentence="Wait {seconds} s | Wait until {until} | Wait",
    icon="clock",
)
async def block(ctx: StepContext) -> Suspend:
    """Raises BlockError(params_invalid). A time that has passed is over at once."""
    params = _Params(ctx.params)
    until, pause_s = params.until, params.seconds
    if until is not None and pause_s is not None:
        raise invalid("A wait has seconds or a date and time, not both")
    if until is not None:
        due_ms = max(ctx.now_ms, _time_ms(until))
    elif pause_s is not None:
        due_ms = ctx.now_ms + round(pause_s * 1000)
    else:
        raise invalid("Seconds is required, or a date and time in Until")
    return Suspend("timer", due_ms=due_ms)


def _time_ms(until: str) -> int:
    try:
        time = datetime.fromisoformat(until.strip())
        if time.year == MAXYEAR:  # in UTC, or rounded, it may lie in a year that there is not
            raise ValueError
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise invalid(
            f"until is not a date and time: {until[:80]!r}", hint="write it as 2027-01-31T09:00:00Z or ...+02:00"
        ) from None
