"""Kept runs and backtests over HTTP and on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

Json = dict[str, Any]


@pytest.fixture
def tax() -> Json:
    """Puts out `<start.amount>` with tax, and takes a branch by it."""
    cases = [{"id": "high", "when": "<tax.result> > 100"}, {"id": "low"}]
    return {
        "format": "weft/1",
        "name": "tax",
        "blocks": {
            "start": {"type": "start"},
            "tax": {"type": "function", "name": "Tax", "params": {"code": "return <start.amount> * 1.5"}},
            "limit": {"type": "condition", "name": "Limit", "params": {"cases": cases}},
            "big": {"type": "set", "name": "Big", "params": {"value": "big"}},
            "small": {"type": "set", "name": "Small", "params": {"value": "small"}},
        },
        "edges": [
            {"source": "start", "target": "tax"},
            {"source": "tax", "target": "limit"},
            {"source": "limit", "handle": "high", "target": "big"},
            {"source": "limit", "handle": "low", "target": "small"},
        ],
    }


@pytest.fixture
async def runs(client: httpx.AsyncClient, tax: Json) -> list[str]:
    await client.post("/api/workflows", json={"document": tax})
    answers = [
        await client.post("/api/workflows/tax/runs?wait=60", json={"input": {"amount": amount}}) for amount in (10, 60)
    ]
    return [answer.json()["run"] for answer in answers]


def higher(tax: Json, code: str = "return <start.amount> * 2") -> Json:
    return tax | {"blocks": tax["blocks"] | {"tax": tax["blocks"]["tax"] | {"params": {"code": code}}}}


async def test_a_document_against_the_last_runs(client: httpx.AsyncClient, runs: list[str], tax: Json) -> None:
    same = (await client.post("/api/workflows/tax/backtest", json={})).json()
    assert [(run["run"], run["result"]) for run in same["runs"]] == [(run, "same") for run in reversed(runs)]
    assert (same["total"], same["next"]) == (2, None)
    answer = await client.post("/api/workflows/tax/backtest", json={"document": higher(tax), "last": 1})
    assert answer.status_code == 200
    page = answer.json()
    (run,) = page["runs"]
    assert (run["run"], run["result"], run["way"]["before"], run["way"]["now"]) == (
        runs[1],
        "other_way",
        ["Small"],
        ["Big"],
    )
    assert run["differences"][0]["value"] == {"pointer": "/result", "a": "90", "b": "120"}
    assert page["next"] is None
    rest = await client.post("/api/workflows/tax/backtest", json={"last": 50, "before": runs[1]})
    assert [run["run"] for run in rest.json()["runs"]] == [runs[0]]


async def test_keeping_a_run(client: httpx.AsyncClient, runs: list[str], tax: Json) -> None:
    kept = (await client.post(f"/api/runs/{runs[0]}/keep", json={"note": "small"})).json()
    assert (kept["run"], kept["workflow"], kept["note"]) == (runs[0], "tax", "small")
    listed = (await client.get("/api/workflows/tax/kept")).json()["kept"]
    assert listed == [kept]
    page = (await client.post("/api/workflows/tax/backtest", json={"kept": True, "document": higher(tax)})).json()
    assert [(run["run"], run["result"]) for run in page["runs"]] == [(runs[0], "changed")]
    assert (await client.delete(f"/api/runs/{runs[0]}/keep")).json() == {"run": runs[0], "dropped": True}
    assert (await client.delete(f"/api/runs/{runs[0]}/keep")).json()["dropped"] is False
    assert (await client.get("/api/workflows/tax/kept")).json()["kept"] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"last": 0}, 422, "body_invalid"),
        ({"last": 1001}, 422, "body_invalid"),
        ({"version": 1, "draft": "d"}, 400, "too_many_documents"),
        ({"version": 9}, 404, "workflow_not_found"),
        ({"draft": "none"}, 404, "draft_not_found"),
        ({"document": {"format": "weft/1", "blocks": {}}}, 422, "document_invalid"),
        ({"runs": 5}, 422, "body_invalid"),
    ],
)
async def test_what_is_refused(client: httpx.AsyncClient, runs: list[str], body: Json, status: int, code: str) -> None:
    answer = await client.post("/api/workflows/tax/backtest", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


async def test_an_open_run_cannot_be_kept(client: httpx.AsyncClient, started: Callable[..., Any], asking: Json) -> None:
    run = (await started(asking, {"text": "x"}))["run"]
    answer = await client.post(f"/api/runs/{run}/keep", json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "run_open")
    assert (await client.post("/api/runs/none/keep", json={})).status_code == 404
    assert (await client.delete("/api/runs/none/keep")).status_code == 404


# --- the command line


async def test_the_commands(
    weft: Callable[..., Any], runs: list[str], tax: Json, tmp_path: Path, client: httpx.AsyncClient
) -> None:
    same = await weft("backtest", "tax")
    assert same.stdout == "2 runs: 2 same.\n"
    file = tmp_path / "tax.json"
    file.write_text(json.dumps(higher(tax)))
    differs = await weft("backtest", "tax", "--last", "500", "--file", str(file))
    told = differs.stdout.splitlines()
    assert told[0] == f"another way   {runs[1]} version 1"
    assert told[1] == "    limit: Small -> Big"
    assert told[2] == "    tax: /result 90 -> 120"
    assert told[3] == '    big: nothing -> "big"'
    assert told[-1] == "2 runs: 1 other values, 1 another way."
    as_json = json.loads((await weft("backtest", "tax", "--file", str(file), "--json")).stdout)
    assert as_json["counts"]["other_way"] == 1
    assert {run["run"] for run in as_json["runs"]} == set(runs)

    nothing = await weft("backtest", "tax", "--kept")
    assert "There is no kept run of 'tax'." in nothing.stderr, "nothing is tested"
    kept = await weft("keep", runs[0], "--note", "small")
    assert kept.stdout == f"{runs[0]} is kept as a test of tax.\n"
    assert (await weft("kept", "tax")).stdout == f"{runs[0]}  small\n"
    assert (await weft("backtest", "tax", "--kept", "--version", "1")).stdout == "1 run: 1 same.\n"
    draft = await client.post("/api/drafts", json={"document": higher(tax), "name": "tax"})
    assert draft.status_code == 201
    of_draft = await weft("backtest", "tax", "--kept", "--draft")
    assert of_draft.stdout.splitlines()[-1] == "1 run: 1 other values."
    assert (await weft("keep", runs[0], "--drop")).stdout == f"{runs[0]} is kept no longer.\n"
    for arguments, why in (
        (("none",), "There is no workflow 'none'"),
        (("tax", "--draft", "--version", "1"), "exclude each other"),
        (("other", "--draft"), "There is no draft of 'other'."),
    ):
        refused = await weft("backtest", *arguments)
        assert why.lower() in refused.stderr.lower()
