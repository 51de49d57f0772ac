"""Kept runs and backtests over HTTP and on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.blocks.llm.endpoints import Endpoints
from executor.open.engine import Engine
from server.cli.backtests import read_rows
from tests.support.dev_model import dev_model

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
        ({"call_models": {}}, 422, "body_invalid"),
        ({"call_models": {"budget_usd": -1}}, 422, "body_invalid"),
        ({"rows": [{}] * 201}, 422, "body_invalid"),
        ({"rows": [{"pins": {"none": 1}}]}, 400, "pin_unknown"),
        ({"model": "dev:a"}, 400, "model_unused"),
        ({"score": {"by": "judge", "judge": {"workflow": "tax"}}}, 400, "judge_not_called"),
        ({"score": {"by": "judge"}, "call_models": {"budget_usd": 1}}, 400, "judge_unknown"),
        ({"score": {"by": "guess"}}, 422, "body_invalid"),
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
        (("tax", "--call-models"), "--call-models and --budget go together"),
        (("tax", "--dataset", "none.csv"), "none.csv cannot be read"),
        (("other", "--draft"), "There is no draft of 'other'."),
    ):
        refused = await weft("backtest", *arguments)
        assert why.lower() in refused.stderr.lower()


# --- evaluations

USAGE = {"input_tokens": 1000, "output_tokens": 100}  # 0.002 dollars
RULES: tuple[Json, ...] = (
    {"when": {"model": "b", "last": "sofa"}, "text": "furniture", "usage": USAGE},
    {"when": {"last": "sofa"}, "text": "a sofa", "usage": USAGE},
    {"text": "tools", "usage": USAGE},
)


@pytest.fixture
async def sorting(client: httpx.AsyncClient, engine: Engine) -> AsyncIterator[str]:
    """A workflow that asks a model with a price, and its run."""
    async with dev_model(*RULES) as model:
        models = engine.parts.services.models
        models.endpoints = Endpoints({"DEV": model.url}, {"DEV": "1/1/10"})
        blocks = {
            "start": {"type": "start"},
            "sort": {"type": "agent", "params": {"model": "dev:a", "prompt": "<start.what>"}},
        }
        document = {
            "format": "weft/1",
            "name": "sorting",
            "blocks": blocks,
            "edges": [{"source": "start", "target": "sort"}],
        }
        await client.post("/api/workflows", json={"document": document})
        answer = await client.post("/api/workflows/sorting/runs?wait=60", json={"input": {"what": "hammer"}})
        yield answer.json()["run"]
        await models.close()


async def test_models_side_by_side_on_a_file(weft: Callable[..., Any], sorting: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("what,expected\nsofa,furniture\nhammer,tools\n")
    beside = ("--dataset", str(file), "--model", "dev:a", "--model", "dev:b", "--call-models", "--budget", "1")
    shown = await weft("backtest", "sorting", *beside, standalone_mode=False)
    assert shown.return_value == 0, shown.output
    head, first, why, second, one, two, spent = [re.sub(r"\d+ ms", "N ms", line) for line in shown.stdout.splitlines()]
    assert re.split("  +", head)[-1] == "active version, dev:b"
    assert re.split("  +", first) == [
        '1 {"what": "sofa"}',
        "0.00",
        "$0.002",
        "N ms",
        "1100",
        "1.00",
        "$0.002",
        "N ms",
        "1100",
    ]
    assert why == '    active version, dev:a: "furniture" -> "a sofa"'
    assert re.split("  +", second)[:2] == ['2 {"what": "hammer"}', "1.00"]
    assert one == "active version, dev:a: score 0.50 (2 of 2 rows), $0.004, N ms, 2200 tokens."
    assert two == "active version, dev:b: score 1.00 (2 of 2 rows), $0.004, N ms, 2200 tokens."
    assert spent == "Spent: $0.008."
    assert (await weft("backtest", "sorting", *beside, "--min-score", "0.9", standalone_mode=False)).return_value == 1
    assert (await weft("backtest", "sorting", *beside, "--min-score", "0.5", standalone_mode=False)).return_value == 0
    told = json.loads((await weft("backtest", "sorting", *beside, "--json")).stdout)
    assert [(each["name"], each["score"]) for each in told["candidates"]] == [
        ("active version, dev:a", 0.5),
        ("active version, dev:b", 1.0),
    ]
    assert told["spent_usd"] == 0.008

    poor = await weft("backtest", "sorting", *beside[:-1], "0.003", "--min-score", "0", standalone_mode=False)
    assert poor.return_value == 1, "two rows have no score"
    assert poor.stdout.count("the budget is spent") == 2
    assert poor.stdout.count("score ") == 2 and poor.stdout.count("(1 of 2 rows)") == 2, "rows take turns"
    assert poor.stdout.count("1 not called") == 2


async def test_a_changed_model_on_recorded_runs(weft: Callable[..., Any], sorting: str) -> None:
    free = await weft("backtest", "sorting", "--model", "dev:b", standalone_mode=False)
    assert free.return_value == 1
    assert "would call Agent" in free.stdout and "Spent: $0." in free.stdout
    paid = await weft(
        "backtest",
        "sorting",
        "--model",
        "dev:b",
        "--call-models",
        "--budget",
        "1",
        "--min-score",
        "1",
        standalone_mode=False,
    )
    assert (paid.return_value, paid.stdout.splitlines()[-1]) == (0, "Spent: $0.002."), paid.output
    by_text = await weft(
        "backtest", "sorting", "--expect", "^tool", "--score", "regex", "--min-score", "1", standalone_mode=False
    )
    assert by_text.return_value == 0, by_text.output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("what\n", "has 0 rows"),
        ("what\na,b\n", "row 2: it has more cells than the first line"),
        ('what\na\n"{x"\n', "row 3, column what: "),
    ],
)
async def test_files_that_are_refused(weft: Callable[..., Any], tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    refused = await weft("backtest", "tax", "--dataset", str(file))
    assert why in refused.stderr, refused.output


def test_rows_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('input,expected,pin.page\n"{""a"": 1}",x,"[1]"\n7,,\n')
    assert read_rows(str(file)) == [
        {"input": {"a": 1}, "expected": "x", "pins": {"page": [1]}},
        {"input": "7", "expected": None, "pins": {}},
    ]
    file.write_text("\ufeffamount,zip\n7,01234\n")
    assert read_rows(str(file)) == [{"input": {"amount": "7", "zip": "01234"}, "expected": None, "pins": {}}]


async def test_a_judge_of_a_token_for_some_workflows(client: httpx.AsyncClient, locked: httpx.AsyncClient) -> None:
    headers = {"authorization": "Bearer the-token"}
    made = await locked.post(
        "/api/tokens", json={"name": "ci", "role": "editor", "workflows": ["tax"]}, headers=headers
    )
    own = {"authorization": f"Bearer {made.json()['token']}"}
    body = {"call_models": {"budget_usd": 1}, "score": {"by": "judge", "judge": {"workflow": "other"}}}
    answer = await locked.post("/api/workflows/tax/backtest", json=body, headers=own)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), answer.text
