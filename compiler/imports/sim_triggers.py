"""Sim's triggers that have a counterpart: schedules, webhooks, and events of GitHub. Every other trigger becomes a
`start` block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from compiler.imports.sim_text import Loss, Texts

_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_NO_TIMES: Final = Loss("Its times cannot be read.", "Set the cron expression of the block.")


def schedule(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """The times of Sim's form as a cron expression; empty, which is an error, when they cannot be read."""
    expression = _cron(params)
    if expression is None:
        losses.append(_NO_TIMES)
    out: dict[str, Any] = {"cron": expression or ""}
    zone = params.get("timezone")
    if isinstance(zone, str) and zone:
        out["tz"] = zone
    return "schedule", out


def _cron(params: Mapping[str, Any]) -> str | None:
    custom = params.get("cronExpression")
    match params.get("scheduleType", "daily"):
        case "minutes" if (step := _number(params.get("minutesInterval", 15), 1, 59)) is not None:
            return f"*/{step} * * * *"
        case "hourly" if (minute := _number(params.get("hourlyMinute", 0), 0, 59)) is not None:
            return f"{minute} * * * *"
        case "daily" if (clock := _clock(params.get("dailyTime"))) is not None:
            return f"{clock} * * *"
        case "weekly" if (clock := _clock(params.get("weeklyDayTime"))) is not None:
            day = str(params.get("weeklyDay") or "MON")[:3].upper()
            return f"{clock} * * {day}" if day in _DAYS else None
        case "monthly" if (clock := _clock(params.get("monthlyTime"))) is not None:
            date = _number(params.get("monthlyDay", 1), 1, 31)
            return f"{clock} {date} * *" if date is not None else None
        case "custom" if isinstance(custom, str) and custom.strip():
            return custom.strip()
        case _:
            return None


def _clock(text: Any) -> str | None:
    """`09:30` -> `30 9`, the first two fields of a cron expression."""
    found = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    return f"{int(found[2])} {int(found[1])}" if found else None


def _number(value: Any, low: int, high: int) -> int | None:
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) < 4 and low <= int(text) <= high else None


def webhook(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Convert a webhook. Its URL is another one, and secrets are not imported: they would be in the document."""
    losses.append(Loss("It gets a new URL.", "Publish the workflow and give the URL of the block to the sender."))
    if params.get("requireAuth") in (True, "true"):
        header = params.get("secretHeaderName")
        sent = f" instead of the header {header}" if isinstance(header, str) and header else ""
        losses.append(
            Loss("Its token is not imported.", f"Send the secret of the new webhook as a bearer token{sent}.")
        )
        return "webhook", {"auth": "token"}
    return "webhook", {"auth": "none"}


def github(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Convert a GitHub trigger. GitHub signs its requests; their events are chosen there."""
    event = str(params.get("selectedTriggerId") or "").removeprefix("github_").replace("_", " ")
    only = f' for "{event}"' if event and event != "webhook" else ""
    hint = f"Publish the workflow, and add its URL and its secret as a webhook of the repository{only}."
    losses.append(Loss("It starts a run for each event that GitHub sends to its new URL.", hint))
    return "webhook", {"auth": "github"}
