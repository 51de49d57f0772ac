"""Recorded shapes: what stands for the identity of an attempt, in each part of a request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft import testing

DOCUMENT = {
    "format": "weft-connector/1",
    "service": "tea",
    "title": "Tea",
    "base_url": "https://tea.example",
    "operations": {
        "order": {
            "title": "Order",
            "method": "PUT",
            "path": "/orders/{{idempotency_uuid}}",
            "query": {"ref": "{{idempotency_hex}}"},
            "headers": {"Idempotency-Key": "{{idempotency_key}}"},
            "body": {"note": "by {{idempotency_key}}"},
        }
    },
}
ASKED = {
    "path": "/orders/$uuid",
    "query": {"ref": "$hex"},
    "headers": {"idempotency-key": "$key"},
    "body": {"note": "by $key"},
}


async def recorded(folder: Path, asked: dict[str, Any]) -> int:
    (folder / "tea.json").write_text(json.dumps(DOCUMENT))
    case = {"operation": "order", "params": {}, "asked": [asked], "answers": [{"body": {}}], "result": {}}
    (folder / "cases.json").write_text(json.dumps({"cases": [case]}))
    return await testing.check_recorded(testing.connector(folder / "tea.json"), folder / "cases.json")


async def test_names_stand_for_what_identifies_the_attempt(tmp_path: Path) -> None:
    assert await recorded(tmp_path, ASKED) == 1


@pytest.mark.parametrize("part", ASKED)
async def test_another_part_is_named(tmp_path: Path, part: str) -> None:
    other: Any = "/orders" if part == "path" else {"idempotency-key": "$uuid"}
    with pytest.raises(AssertionError, match=rf"^case 0 \(order\): {part} of request 0 is .*\$\w+.*, not "):
        await recorded(tmp_path, ASKED | {part: other})
