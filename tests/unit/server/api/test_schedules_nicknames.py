"""`@daily` and the other nicknames of cron are accepted wherever a cron expression is."""

from __future__ import annotations

import re

import httpx
import pytest

from compiler.compile import compile_document
from executor.blocks.types.registry import Registry
from executor.errors import CronInvalid
from executor.kernel.values import cron

MIDNIGHT = 1_795_305_600_000  # 2026-11-22T00:00:00Z, a Sunday


@pytest.mark.parametrize(
    ("nickname", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @Annually ", "0 0 1 1 *"),
    ],
)
def test_a_nickname_means_its_fields(nickname: str, fields: str) -> None:
    assert re.match(str(cron.EXPRESSION_SCHEMA["pattern"]), nickname)
    assert cron.parse(nickname, "Europe/Berlin").upcoming(MIDNIGHT, 3) == (
        cron.parse(fields, "Europe/Berlin").upcoming(MIDNIGHT, 3)
    )


def test_an_unknown_nickname_is_named_with_those_that_exist() -> None:
    with pytest.raises(CronInvalid, match=r"@REBOOT.*@daily"):
        cron.parse("@reboot")


def test_a_schedule_block_takes_a_nickname() -> None:
    document = {"format": "weft/1", "blocks": {"every": {"type": "schedule", "params": {"cron": "@daily"}}}}
    assert compile_document(document, Registry.load()).diagnostics == []


async def test_the_api_takes_a_nickname(client: httpx.AsyncClient) -> None:
    shown = await client.get("/api/cron", params={"expr": "@daily", "tz": "Europe/Berlin"})
    assert shown.status_code == 200, shown.text
    document = {"format": "weft/1", "name": "nightly", "blocks": {"start": {"type": "start"}}}
    assert (await client.post("/api/workflows", json={"document": document})).status_code == 201
    made = await client.put("/api/schedules/s1", json={"workflow": "nightly", "cron": "@daily"})
    assert made.status_code == 201, made.text
    assert made.json()["cron"] == "@daily"
