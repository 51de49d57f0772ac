"""Cron expressions with five fields, or a nickname such as @daily or `@every 90s`, in a time zone, as a function from
time to time. Pure: no clock in here.

When the clocks change, wall-clock time has a gap or an overlap. The rules:
 1. An expression that names hours goes by the wall clock: a time in the gap becomes the gap's end, a time in the
    overlap once, the first time it comes. `30 2 * * *` runs once on each day of the year.
 2. An expression for every hour (`*/15 * * * *`) goes by elapsed time: it keeps its rhythm through both.
Fire times strictly increase in either case. Fields, names and `L`, `LW`, `MON#2` are those of cronsim; a day of the
month and a day of the week that are both set count as either-or, as in cron.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from msgspec import Struct

from executor.errors import CronInvalid, ZoneUnknown

EXPRESSION_LENGTH_MAX: Final = 200
# For descriptions of the API. The errors of `parse` state what the fields may be.
EXPRESSION_SCHEMA: Final = {
    "minLength": 6,
    "pattern": r"^\s*((\S+\s+){4}\S+|@\w+|@every\s+\d+s)\s*$",
    "examples": ["0 9 * * MON-FRI", "@daily", "@every 90s"],
}
NICKNAMES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
EVERY_MAX_S: Final = 31 * 86_400
_EVERY: Final = re.compile(r"@EVERY (\d{1,9})S")
# The longest stretch that any zone's clocks were set back by since they are counted in hours: for looking backwards.
OVERLAP_MAX: Final = timedelta(hours=3)
# A schedule is for years to come; the calendar of Python ends in 9999, and arithmetic near its ends overflows.
YEAR_MAX: Final = 9000


class Cron(Struct, frozen=True):
    """Made by `parse`. Fire times are Unix milliseconds: whole minutes, or multiples of `every_ms` since 1970."""

    expression: str
    zone: tzinfo
    rhythm: bool  # every hour: by elapsed time
    every_ms: int = 0

    def next(self, after_ms: int) -> int | None:
        """Return the first fire time later than `after_ms`, or None if there is none within fifty years."""
        if self.every_ms:
            return (after_ms // self.every_ms + 1) * self.every_ms
        local = self._local(after_ms)
        for found in self._times(local):
            if found > after_ms:
                return found
        return None

    def previous(self, at_ms: int) -> int | None:
        """Return the last fire time that is not later than `at_ms`, or None if there is none within fifty years."""
        if self.every_ms:
            return at_ms // self.every_ms * self.every_ms
        # When clocks go back a local time occurs twice; start the backward search after it.
        for found in self._times(self._local(at_ms) + OVERLAP_MAX, reverse=True):
            if found <= at_ms:
                return found
        return None

    def upcoming(self, after_ms: int, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            at = self.next(found[-1] if found else after_ms)
            if at is None:
                break
            found.append(at)
        return found

    def _local(self, at_ms: int) -> datetime:
        at = datetime.fromtimestamp(at_ms // 1000, self.zone)
        return at if self.rhythm else at.replace(tzinfo=None)

    def _times(self, start: datetime, reverse: bool = False) -> Iterator[int]:
        for found in CronSim(self.expression, start, reverse=reverse):
            if found.year > YEAR_MAX:
                return
            yield _instant_ms(found if self.rhythm else _on_the_clock(found, self.zone))


def parse(expression: str, zone: str = "UTC") -> Cron:
    """Parse an expression in a time zone. Raises CronInvalid, ZoneUnknown."""
    if zone not in zones():
        hint = "use a name such as Europe/Berlin, or UTC"
        if len(zones()) == 1:
            hint = "this machine has no time zones except UTC: install its tzdata package, or `pip install tzdata`"
        raise ZoneUnknown(f"there is no time zone {zone[:80]!r}", pointer="/tz", hint=hint)
    fields = " ".join(expression.upper().split())
    return _parsed(NICKNAMES.get(fields, fields), zone)


@functools.lru_cache(maxsize=1024)
def _parsed(expression: str, zone: str) -> Cron:
    shown = repr(expression[:80])
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise _invalid(f"a cron expression has at most {EXPRESSION_LENGTH_MAX} characters")
    if every := _EVERY.fullmatch(expression):
        seconds = int(every[1])
        if not 1 <= seconds <= EVERY_MAX_S:
            raise _invalid(f"@every takes 1s to {EVERY_MAX_S}s, not {seconds}s")
        return Cron(expression, UTC, rhythm=True, every_ms=seconds * 1000)
    if expression.startswith("@"):
        raise _invalid(f"there is no cron nickname {shown}; use {', '.join(NICKNAMES).lower()}, @every 90s")
    if len(expression.split()) != 5:
        raise _invalid(f"a cron expression has five fields, but {shown} has {len(expression.split())}")
    try:
        found = CronSim(expression, datetime(2024, 1, 1))
    except CronSimError as error:
        raise _invalid(f"the cron expression {shown} cannot be read: {str(error).lower()}") from None
    cron = Cron(expression, UTC if zone == "UTC" else ZoneInfo(zone), rhythm=found.hours == set(range(24)))
    if cron.next(0) is None:
        raise _invalid(f"the cron expression {shown} matches no date")
    return cron


def _invalid(message: str) -> CronInvalid:
    hint = (
        "the fields are minute, hour, day of the month, month and day of the week; 0 9 * * MON-FRI is 9:00 on weekdays"
    )
    return CronInvalid(message, pointer="/cron", hint=hint)


@functools.cache
def zones() -> frozenset[str]:
    """IANA names this machine knows; UTC needs no file."""
    return frozenset(available_timezones()) - {"localtime", "Factory"} | {"UTC"}


def _on_the_clock(wall: datetime, zone: tzinfo) -> datetime:
    early = wall.replace(tzinfo=zone, fold=0)
    at = early.astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == wall:
        return at
    # In a gap: the two readings lie on both sides of the jump, which is found by halving.
    before, after = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    offset = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


def _instant_ms(at: datetime) -> int:
    return round(at.timestamp()) * 1000
