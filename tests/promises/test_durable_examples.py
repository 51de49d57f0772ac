"""The durable functions of `examples`, killed at every commit on SQLite and PostgreSQL: they end as without a crash,
and nothing is done twice unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import weft
from examples.agent_app.app import publish, research
from examples.compare import in_weft
from examples.compare import outside as compared
from examples.durable.etl import etl
from examples.durable.saga import order
from examples.durable.signup import signup
from executor.blocks.connectors.stored import connectors
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.open.testing.crashes import COMMITS_MAX, When, killer
from executor.open.testing.process import DONE, ERROR_FILE, Process, Result, Workflow, in_child
from executor.service.views import WaitView
from tests.promises.test_durable_cancel import Cancelling
from tests.support.durable_functions import outside
from tests.support.postgres_crashes import crash_after_each_commit
from tests.support.size import size
from weft import testing

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

QUESTION = "Did the courier take it?"
ORDER = {"order": "7", "amount": 3}
MODEL = testing.ScriptedModel(
    {"when": {"tool": ""}, "calls": [{"name": "search", "arguments": {"query": "lanes"}}]},
    {"when": {"tool": "search"}, "calls": [{"name": "publish", "arguments": {"text": "All about lanes"}}]},
    {"text": "It is out: {{tool}}."},
)


class Case(Struct):
    """A program with its input and answers, and its end without a crash. `commits`: at least so many."""

    flow: weft.DurableFunction[..., Any]
    input: Mapping[str, Any] = {}
    answers: Mapping[str, Any] = {}
    output: Any = None
    status: str = "succeeded"
    commits: int = 3


CASES = {
    "signup-confirmed": Case(signup, {"name": "ada"}, {"confirmed": "ada@example.org"}, "confirmed"),
    "signup-late": Case(signup, {"name": "ada"}, {}, "expired"),
    "etl": Case(etl, {"rows": 25}, {}, 140, commits=8),
    "saga-sent": Case(order, ORDER, {QUESTION: "approve"}, "sent"),
    "saga-no-courier": Case(order, ORDER, {QUESTION: "reject"}, status="failed", commits=8),
    "saga-late": Case(order, ORDER, {}, status="failed", commits=8),
    "saga-cancelled": Case(order, ORDER, {QUESTION: testing.CANCEL}, status="cancelled", commits=8),
    "agent": Case(
        research,
        {"question": "What is a lane?"},
        {"Call publish?": "approve"},
        "It is out: published 15 letters.",
    ),
    "chain": Case(in_weft.chain, {}, {}, 3),
    "fan": Case(in_weft.fan, {"words": ["a", "bb", "ccc"]}, {}, 6),
    "approval": Case(in_weft.approval, {}, {"Publish a text?": "approve"}, "published a text"),
    "sleep": Case(in_weft.sleep, {}, {}, "before and after"),
    "branch": Case(in_weft.branch, {"amount": 5}, {}, "sorry"),
}
MODELS = {"local": MODEL}
PAYMENT = {"id": "payment-7", "amount": 3}
DID = ["reserve 7-0", "reserve 7-1", "charge 3 for 7"]
UNDO = ["undo 7-0", "undo 7-1", "undo payment-7"]


@pytest.fixture(autouse=True)
def witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record the lines that the programs print, and their calls of `examples.compare.outside` that change something."""
    for module in ("signup", "etl", "saga"):
        monkeypatch.setattr(f"examples.durable.{module}.print", outside.record, raising=False)
    calls: Iterator[int] = iter(range(1, 1_000))

    def mark(name: str) -> int:
        if name in ("store", "publish", "before", "after", "by_card", "by_invoice", "apologise"):
            outside.record(name)
        return next(calls)

    monkeypatch.setattr(compared, "mark", mark)
    published = publish.function

    @wraps(published)
    async def publish_once(text: str) -> str:
        outside.record(f"publish {text}")
        made: str = await published(text)
        return made

    monkeypatch.setattr(publish, "function", publish_once)


@pytest.mark.parametrize("name", CASES)
async def test_killed_at_every_commit_on_sqlite(name: str) -> None:
    case = CASES[name]
    report = await testing.crash_everywhere(case.flow, case.input, answers=case.answers, outside=outside, models=MODELS)
    print(name, report)
    assert (report.status, report.output) == (case.status, case.output)
    assert report.commits >= case.commits


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
async def test_killed_after_each_commit_on_postgresql(name: str, postgres_server: str, tmp_path: Path) -> None:
    """Each in `make soak`, else each second one."""
    case = CASES[name]
    commits, end = await crash_after_each_commit(
        case.flow, case.input, case.answers, outside, postgres_server, tmp_path, MODELS, every=size(2, 1)
    )
    print(name, f"{commits} crashes")
    assert (end.status, end.output) == (case.status, case.output)
    assert commits >= case.commits


def truth(wait: WaitView) -> Any:
    """Approve, and answer for a step that was lost whether it was done, with its output."""
    if wait.kind != "attention":
        return "approve"
    [n] = re.findall(r"Step (\d+) of", wait.title or "")
    did = [effect.what["what"] for effect in outside.effects if effect.what["step"] == n]
    if not did:
        return "retry"
    return {"action": "done", "fields": {"output": PAYMENT if did[0].startswith("charge") else None}}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_saga_that_is_cancelled_after_a_crash_at_each_commit_is_undone_once(
    when: When, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(what: str) -> None:
        outside.record({"what": what, "step": weft.context().idempotency_key.rpartition("#")[2]})

    monkeypatch.setattr("examples.durable.saga.print", note)
    Registry.load(connectors())
    answers = {QUESTION: truth, "body": truth, "undo": truth}
    workflow = Workflow(order, ORDER, blocks_of([order], None), answers, {}, (), endpoints_of(None), (), outside)
    undone = crashes = 0
    for commit in range(1, COMMITS_MAX):
        outside.clear()
        folder = tmp_path / f"{commit}"
        folder.mkdir()
        assert await in_child(Process(workflow, folder).make, folder) == DONE
        if await in_child(Process(workflow, folder, fault=killer(commit, when)).play, folder) == DONE:
            break
        crashes += 1
        assert await in_child(Cancelling(workflow, folder).cancel, folder) == DONE
        assert await in_child(Process(workflow, folder).play, folder) == DONE, (folder / ERROR_FILE).read_text()
        result = Result.read(folder)
        effects = [effect.what["what"] for effect in outside.effects]
        if result.nodes["body"] == "succeeded" or result.nodes["undo@:finally"] == "failed":  # it had ended
            assert effects == DID
            continue
        done = [what for what in effects if not what.startswith("undo ")]
        assert done == DID[: len(done)] and result.status == "cancelled"
        assert effects == [*done, *reversed(UNDO[: len(done)])]
        undone += bool(done)
    assert (undone, crashes) >= (4, 7), (undone, crashes)
    print(f"{crashes} crashes {when} a commit, {undone} undone")
