"""How much of the machine other programs use, from /proc/stat and the CPU time of this process and its children."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from msgspec import Struct

STAT = Path("/proc/stat")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Reading(Struct, frozen=True):
    """Seconds: a clock, the time that all processors were busy, and the CPU time of our own processes, where children
    count when they have ended."""

    at_s: float
    busy_s: float
    own_s: float


def reading() -> Reading | None:
    """None: this system has no /proc/stat."""
    try:
        line = STAT.read_text().partition("\n")[0]
    except OSError:
        return None
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Reading(time.perf_counter(), busy_ticks(line) / TICKS, own_s)


def busy_ticks(line: str) -> int:
    """All of the first line of /proc/stat but idle and iowait. What the host took away (steal) counts as busy; guests
    are part of user and nice already."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(text) for text in line.split()[1:9])
    return user + nice + system + irq + softirq + steal


def foreign(before: Reading | None, after: Reading | None) -> float | None:
    """Processors that other programs used between the two."""
    if before is None or after is None or after.at_s <= before.at_s:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return max(0.0, others_s / (after.at_s - before.at_s))
