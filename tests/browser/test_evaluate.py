"""Prompts and models side by side: the draft and another model on the rows of a file and on recorded runs, within a
budget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document
from tests.browser.test_a11y import findings
from tests.support.dev_model import scripted_model

USAGE = {"input_tokens": 1000, "output_tokens": 100}  # 0.002 dollars
RULES: list[dict[str, Any]] = [
    {"when": {"last": "Output: "}, "output": {"score": {"reason": "Short.", "score": 0.5}}, "usage": USAGE},
    {"when": {"model": "careful", "last": "sofa"}, "text": "furniture", "usage": USAGE},
    {"when": {"last": "sofa"}, "text": "a sofa for the living room", "usage": USAGE},
    {"text": "tools", "usage": USAGE},
]
CSV = 'what,expected\n"a red sofa",furniture\n"a hammer, used",tools\nsofa,furniture\n'


def sorting() -> dict[str, Any]:
    agent = {
        "type": "agent",
        "name": "Sort",
        "at": [288, 0],
        "params": {"model": "dev:quick", "prompt": "<start.what>"},
    }
    return {**document({"sort": agent}, [("start", "sort")]), "name": "sorting"}


@pytest.fixture
def editor(servers: Servers, contexts: Contexts, tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "script.json").write_text(json.dumps({"rules": RULES}))
    (tmp_path / "rows.csv").write_text(CSV)
    (tmp_path / "bad.csv").write_text("what\n{x\n")
    with scripted_model(tmp_path / "script.json") as url:
        server = servers(WEFT_MODEL_DEV=url, WEFT_PRICE_DEV="1/1/10")
        editor = Editor(contexts(server.url).page(), server.url)
        editor.api.post("/api/workflows", {"document": sorting()})
        for what in ("a red sofa", "a saw"):
            editor.api.post("/api/workflows/sorting/runs?wait=60", {"input": {"what": what}})
        body = {"document": sorting(), "name": "sorting", "base_version": 1}
        editor.draft_id = str(editor.api.post("/api/drafts", body)["id"])
        editor.page.goto(f"/w/{editor.draft_id}")
        editor.is_ready("sort")
        yield editor


def opened(editor: Editor) -> None:
    editor.choose("Evaluate prompts and models")
    expect(editor.page.get_by_role("dialog", name="Evaluate sorting")).to_be_visible()


def add(editor: Editor, model: str) -> None:
    editor.at("candidate-model").fill(model)
    editor.at("candidate-add").click()


def test_models_are_compared_on_the_rows_of_a_file(editor: Editor, tmp_path: Path) -> None:
    opened(editor)
    page = editor.page
    expect(page.get_by_text("Nothing outside is called")).to_be_visible()
    editor.at("evaluate-rows").select_option("file")
    expect(editor.at("evaluate-start")).to_have_attribute("aria-disabled", "true")
    editor.at("evaluate-file").set_input_files(tmp_path / "bad.csv")
    expect(page.get_by_role("alert")).to_contain_text("Row 2, column what")
    editor.at("evaluate-file").set_input_files(tmp_path / "rows.csv")
    expect(page.get_by_text("rows.csv, 3 rows")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    add(editor, "dev:careful")
    expect(editor.at("candidate")).to_have_count(2)

    editor.at("evaluate-start").click()
    cells = editor.at("evaluate-cell")
    expect(cells).to_have_count(6)
    expect(cells.first).to_contain_text("would call Agent")
    expect(editor.at("evaluate-head").first).to_contain_text("no score")

    editor.at("evaluate-calls").check()
    editor.at("evaluate-start").click()
    expect(editor.at("evaluate-start")).to_have_text("Evaluate again")
    expect(cells).to_have_count(6)
    quick, careful = editor.at("evaluate-head").all()
    expect(quick).to_contain_text(re.compile(r"0\.33.*mean of 3 of 3.*\$0\.006.* a row.*3,300 tokens"))
    expect(careful).to_contain_text(re.compile(r"1\.00.*mean of 3 of 3"))
    expect(cells.nth(0).locator("del")).to_have_text("furniture")
    expect(cells.nth(0).locator("ins")).to_have_text("a sofa for the …")
    expect(cells.nth(1)).to_contain_text("furniture")
    expect(cells.nth(1).locator("ins")).to_have_count(0)
    expect(editor.at("evaluate-spent")).to_have_text("$0.012 of $0.50 spent")
    assert findings(page) == []

    editor.at("evaluate-budget").fill("0.003")
    editor.at("evaluate-start").click()
    expect(editor.at("evaluate-start")).to_have_text("Evaluate again")
    expect(cells.nth(1)).to_contain_text("1.00")
    expect(cells.nth(2)).to_contain_text("not called")
    expect(cells.nth(2)).to_contain_text("the budget is spent")
    expect(editor.at("evaluate-head").nth(1)).to_contain_text("2 not called")


def test_recorded_runs_and_a_judge(editor: Editor) -> None:
    opened(editor)
    add(editor, "dev:careful")
    editor.at("evaluate-start").click()
    cells = editor.at("evaluate-cell")
    expect(cells).to_have_count(4)
    expect(cells.nth(0)).to_contain_text("1.00")  # replayed: nothing differs
    expect(cells.nth(1)).to_contain_text("would call Agent")
    editor.at("evaluate-score").select_option("judge")
    expect(editor.page.locator(".evaluate__why")).to_contain_text("allow calls")
    editor.at("evaluate-calls").check()
    editor.at("evaluate-judge").fill("dev:judge")
    editor.at("evaluate-criteria").fill("It is short")
    editor.at("evaluate-start").click()
    expect(editor.at("evaluate-start")).to_have_text("Evaluate again")
    for cell in cells.all():
        expect(cell).to_contain_text(re.compile(r"0\.50.*Short\."))
    expect(editor.at("evaluate-spent")).to_have_text("$0.012 of $0.50 spent")  # two answers, four judgements
    total = editor.api.get("/api/usage", workflow="sorting")["total"]
    assert (total["calls"], total["cost"]) == (8, "0.016"), "two of runs, six of the evaluation"


def test_a_workflow_is_the_judge_of_a_part(editor: Editor) -> None:
    code = {"code": "return {score: <start.output> > 0 ? 1 : 0, reason: 'It was asked once.'}"}
    judge = document({"count": {"type": "function", "name": "Count", "params": code}}, [("start", "count")])
    editor.api.post("/api/workflows", {"document": {**judge, "name": "counting"}})
    opened(editor)
    editor.at("evaluate-score").select_option(label="Scored by a workflow")
    editor.at("evaluate-calls").check()
    why = editor.page.locator(".evaluate__why")
    expect(why).to_contain_text("Choose the workflow that is the judge")
    editor.page.get_by_label("Workflow that returns the score").select_option("counting")
    editor.page.get_by_label("Value to score").fill("rounds")
    expect(why).to_contain_text("begins with a slash")
    editor.page.get_by_label("Value to score").fill("/rounds")
    editor.at("evaluate-start").click()
    cells = editor.at("evaluate-cell")
    expect(cells).to_have_count(2)
    for cell in cells.all():
        expect(cell).to_contain_text(re.compile(r"1\.00.*It was asked once\."))


def test_it_is_offered_where_a_model_would_be_called(editor: Editor) -> None:
    editor.select("sort")
    editor.at("field-prompt").first.click()
    editor.page.keyboard.type("Sort this: ")
    editor.is_saved()
    editor.at("publish").click()
    editor.at("replay-evaluate").click()
    expect(editor.page.get_by_role("dialog", name="Evaluate sorting")).to_be_visible()
