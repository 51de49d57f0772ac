"""When a schedule is due: all zones, 2020 to 2040, and the two days of the year on which clocks change."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.errors import CronInvalid, ZoneUnknown
from executor.kernel.values import cron
from executor.kernel.values.cron import parse, zones
from tests.support.cost import computes_within

FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2020, 2040))
HOUR_MS = 3_600_000


def ms(*parts: int, zone: str = "UTC", fold: int = 0) -> int:
    return round(datetime(*parts, tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)  # type: ignore[misc,arg-type]


def shown(moments: list[int], zone: str) -> list[str]:
    return [f"{datetime.fromtimestamp(at / 1000, ZoneInfo(zone)):%m-%d %H:%M%z}" for at in moments]


# --- the days on which clocks change ---


def test_a_time_in_the_gap_fires_at_its_end() -> None:
    times = parse("30 2 * * *", "Europe/Berlin")
    found = times.upcoming(ms(2026, 3, 28, 0, 0, zone="Europe/Berlin"), 3)
    assert shown(found, "Europe/Berlin") == ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]


def test_a_time_in_the_overlap_fires_once_the_first_time() -> None:
    times = parse("30 2 * * *", "Europe/Berlin")
    found = times.upcoming(ms(2026, 10, 24, 0, 0, zone="Europe/Berlin"), 3)
    assert shown(found, "Europe/Berlin") == ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]
    # Who begins to look in the second half of the overlap does not go back to the first.
    late = ms(2026, 10, 25, 2, 10, zone="Europe/Berlin", fold=1)
    assert shown(times.upcoming(late, 1), "Europe/Berlin") == ["10-26 02:30+0100"]


def test_several_times_in_the_gap_are_one() -> None:
    times = parse("*/20 2 * * *", "America/New_York")
    found = times.upcoming(ms(2026, 3, 8, 0, 0, zone="America/New_York"), 2)
    assert shown(found, "America/New_York") == ["03-08 03:00-0400", "03-09 02:00-0400"]


def test_every_quarter_of_an_hour_keeps_its_rhythm() -> None:
    times = parse("*/15 * * * *", "Europe/Berlin")
    for start in (ms(2026, 3, 29, 0, 30), ms(2026, 10, 25, 0, 30)):
        found = times.upcoming(start, 12)
        assert {later - earlier for earlier, later in pairwise(found)} == {15 * 60_000}


def test_half_an_hour_and_a_skipped_midnight() -> None:
    lord_howe = parse("15 2 * * *", "Australia/Lord_Howe")
    found = lord_howe.upcoming(ms(2026, 10, 3, 12, 0, zone="Australia/Lord_Howe"), 1)
    assert shown(found, "Australia/Lord_Howe") == ["10-04 02:30+1100"]
    cairo = parse("0 0 * * *", "Africa/Cairo")
    found = cairo.upcoming(ms(2026, 4, 23, 12, 0, zone="Africa/Cairo"), 2)
    assert shown(found, "Africa/Cairo") == ["04-24 01:00+0300", "04-25 00:00+0300"]


def test_backwards_finds_what_forwards_gave() -> None:
    times = parse("45 1 * * *", "America/New_York")
    fired = ms(2026, 11, 1, 1, 45, zone="America/New_York")
    assert times.previous(ms(2026, 11, 1, 1, 10, zone="America/New_York", fold=1)) == fired
    assert times.previous(fired) == fired
    assert times.previous(fired - 1) == ms(2026, 10, 31, 1, 45, zone="America/New_York")


# --- all zones ---

EXPRESSIONS = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "30", "59", "*/15", "0,45", "*", "7-9"]),
    st.sampled_from(["*", "0", "1", "2", "3", "23", "*/2", "0-4", "2,3"]),
    st.sampled_from(["*", "1", "L", "29", "*/10"]),
    st.sampled_from(["*", "3", "10", "2,4", "NOV"]),
    st.sampled_from(["*", "SUN", "MON-FRI", "5L", "MON#2"]),
)


def changes(zone: ZoneInfo, around: datetime) -> datetime | None:
    """A moment shortly before the clocks of a zone change, within the year after `around`."""
    at = around
    for _ in range(53):
        later = at + timedelta(days=7)
        if at.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            while later - at > timedelta(hours=1):
                middle = at + (later - at) / 2
                same = middle.astimezone(zone).utcoffset() == at.astimezone(zone).utcoffset()
                at, later = (middle, later) if same else (at, middle)
            return at
        at = later
    return None


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, st.sampled_from(sorted(zones())), st.integers(FIRST, LAST), st.booleans())
def test_moments_strictly_increase_and_are_moments_of_the_expression(
    expression: str, name: str, start_s: int, at_change: bool
) -> None:
    zone = ZoneInfo(name)
    if at_change and (found := changes(zone, datetime.fromtimestamp(start_s, UTC))) is not None:
        start_s = int(found.timestamp()) - 3600
    try:
        times = parse(expression, name)
    except CronInvalid as error:
        assert "never" in error.message or "matches no date" in error.message or "bad day" in error.message
        return
    moments = times.upcoming(start_s * 1000, 12)
    assert all(earlier < later for earlier, later in pairwise([start_s * 1000, *moments]))
    for i, at in enumerate(moments):
        assert at % 60_000 == 0
        # A moment does not depend on where the search began, and the search backwards finds it too.
        assert times.next(at - 1) == at
        assert times.previous(at) == at
        assert times.previous(at - 1) == (moments[i - 1] if i else times.previous(start_s * 1000))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(zones())), st.integers(FIRST, LAST), st.integers(0, 23), st.integers(0, 59))
def test_a_daily_time_comes_once_on_each_day(name: str, start_s: int, hour: int, minute: int) -> None:
    zone = ZoneInfo(name)
    change = changes(zone, datetime.fromtimestamp(start_s, UTC)) or datetime.fromtimestamp(start_s, UTC)
    day = change.astimezone(zone).replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
    days = [first_shown(day + timedelta(days=n), zone) for n in range(-2, 4)]
    assert parse(f"{minute} {hour} * * *", name).upcoming(days[0], 5) == days[1:]


def first_shown(wall: datetime, zone: ZoneInfo) -> int:
    """When clocks show `wall` for the first time; minute by minute to the end of a gap."""
    while True:
        moment = wall.replace(tzinfo=zone, fold=0)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall:
            return round(moment.timestamp()) * 1000
        wall += timedelta(minutes=1)


# --- what is refused ---


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "0 * * * * *", "61 * * * *", "* 24 * * *", "0 0 31 2 *", "0 0 */31 2 MON#5", "@reboot", "a b c d e",
     "*/0 * * * *", "5-1 * * * *", "0 0 * * 8", "0 0 * * MON#6", "1," * 200 + "1 * * * *"],
)  # fmt: skip
def test_what_is_no_expression_says_why(expression: str) -> None:
    with pytest.raises(CronInvalid) as refused:
        parse(expression)
    assert refused.value.code == "cron_invalid" and refused.value.pointer == "/cron"
    assert refused.value.hint


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/-,#LW MONSUN٣²\t", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with computes_within(1), suppress(CronInvalid):
        assert parse(text).next(0) is not None


@pytest.mark.parametrize(
    "zone", ["", "Nowhere", "../etc/passwd", "/etc/passwd", "europe/berlin", "localtime", "Europe"]
)
def test_an_unknown_zone(zone: str) -> None:
    with pytest.raises(ZoneUnknown):
        parse("0 0 * * *", zone)


def test_without_time_zones_there_is_still_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron, "available_timezones", set)
    cron.zones.cache_clear()
    try:
        assert parse("0 3 * * *", "UTC").next(0) == 3 * HOUR_MS
        with pytest.raises(ZoneUnknown) as refused:
            parse("0 3 * * *", "Europe/Berlin")
        assert "tzdata" in refused.value.hint
    finally:
        monkeypatch.undo()
        cron.zones.cache_clear()
