"""Lost attempts at the engine: who is asked, what is shown, and what the answers do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.types.registry import Registry
from executor.open.engine import Engine
from executor.service.views import WaitView
from tests.support.blocks import Step
from tests.support.documents import chain
from tests.support.runs import engine_on, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

MAIL = {"type": "mail", "name": "Tell them", "assign": "$.told"}


async def lose(path: Path, mail: Step) -> str:
    """A run whose mail block was running when its process went away."""
    mail.holding["mail"] = asyncio.Event()
    async with engine_on(path, Step(), mail) as engine:
        document = chain("first", "mail", "last", mail=MAIL) | {"variables": {"told": None}}
        run = (await engine.submit(document)).run
        await until_event(engine, run, "node.started", "mail")
        await mail.until_ran("mail")
        await engine.stop_working(grace_s=0)
    mail.holding.clear()
    return run


async def question(engine: Engine, run: str) -> WaitView:
    await until_event(engine, run, "wait.opened", "mail")
    return (await engine.waits.list(run=run))[0]


def token_of(wait: WaitView) -> str:
    assert wait.link is not None
    return wait.link.rpartition("/")[2]


@pytest.mark.parametrize(
    ("action", "fields", "status", "output", "ran"),
    [
        ("retry", {}, "succeeded", {"n": 2, "value": None}, 2),
        ("done", {"output": {"id": 7}}, "succeeded", {"id": 7}, 1),
        ("done", {}, "succeeded", None, 1),
        ("fail", {}, "failed", None, 1),
    ],
)
async def test_a_lost_mail_is_asked_about_and_the_answer_is_what_counts(
    tmp_path: Path, action: str, fields: dict[str, Any], status: str, output: Any, ran: int
) -> None:
    mail = Step("mail", careful=True)
    run = await lose(tmp_path / "weft.db", mail)
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        wait = await question(engine, run)
        assert (wait.kind, wait.key, wait.actions) == ("attention", "mail", ("retry", "done", "fail"))
        assert wait.request["title"] == "Attempt 1 of Tell them was lost"
        assert "may repeat that work" in wait.request["text"]
        view = await settled(engine, run)
        assert {node.key: (node.status, node.lost) for node in view.nodes}["mail"] == ("needs_attention", 1)
        assert [(why.key, why.state) for why in await engine.history.why(run, "mail")] == [("mail", "needs_attention")]
        assert [n.state for n in (await engine.runs.graph(run)).nodes if n.id == "mail"] == ["needs_attention"]
        assert (await engine.runs.node(run, "mail")).status == "needs_attention"

        await engine.answer(token_of(wait), fields, action, by="Ada")
        assert [record.type async for records in engine.follow(run) for record in records][-1] == "run.finished"
        view = await engine.runs.view(run)
        assert view.status == status
        assert mail.ran["mail"] == ran
        node = next(node for node in view.nodes if node.key == "mail")
        assert (node.output, node.lost) == (output, 1)
        assert view.variables["told"] == output
        if status == "failed":
            assert node.error is not None
            assert (node.error["code"], node.error["message"]) == (
                "attempt_lost",
                "the attempt was lost and marked as failed by Ada",
            )


async def test_the_question_outlives_another_restart(tmp_path: Path) -> None:
    mail = Step("mail", careful=True)
    run = await lose(tmp_path / "weft.db", mail)
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        wait = await question(engine, run)
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        assert (await question(engine, run)).id == wait.id == "mail!1"
        await engine.answer(token_of(await question(engine, run)), {}, "retry")
        await until_event(engine, run, "run.finished")
        assert mail.ran["mail"] == 2


async def test_a_block_that_may_be_repeated_is_repeated(tmp_path: Path) -> None:
    mail = Step("mail")
    run = await lose(tmp_path / "weft.db", mail)
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        assert (await settled(engine, run)).status == "succeeded"
        view = await engine.runs.view(run)
        assert {node.key: node.lost for node in view.nodes}["mail"] == 1
        assert mail.ran["mail"] == 2


async def test_why_tells_of_losses_while_the_next_attempt_runs(tmp_path: Path) -> None:
    mail = Step("mail")
    run = await lose(tmp_path / "weft.db", mail)
    mail.holding["mail"] = asyncio.Event()
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        await until_event(engine, run, "node.started", "mail", count=2)
        [why] = await engine.history.why(run, "mail")
        assert (why.state, why.reasons) == (
            "running",
            ("attempt 2 is running", "1 earlier attempt ended without a result"),
        )
        mail.holding["mail"].set()
        await until_event(engine, run, "run.finished")


@pytest.mark.parametrize(
    ("type", "policy", "on_lost"),
    [
        ("email", {}, "ask"),
        ("http", {}, "retry"),
        ("set", {}, "retry"),
        ("http", {"on_lost": "ask"}, "ask"),
        ("email", {"on_lost": "retry"}, "retry"),
        ("email", {"on_lost": "fail"}, "fail"),
    ],
)
def test_what_a_loss_means_unless_the_author_says(type: str, policy: dict[str, str], on_lost: str) -> None:
    params = {"email": {"to": "a@example.org", "subject": "x"}, "http": {"url": "https://example.org"}, "set": {}}[type]
    compiled = compile_document(chain("b", b={"type": type, "params": params, "policy": policy}), Registry.load())
    assert compiled.plan is not None, compiled.diagnostics
    number = compiled.plan.node_index("b")
    assert number is not None
    assert compiled.plan.node(number).policy.on_lost == on_lost


def test_other_words_are_refused() -> None:
    document = chain("b", b={"type": "set", "policy": {"on_lost": "repeat"}})
    [found] = compile_document(document, Registry.load()).diagnostics
    assert (found.severity, found.pointer) == ("error", "/blocks/b/policy/on_lost")


@pytest.mark.parametrize(("on_lost", "status"), [("fail", "failed"), ("retry", "succeeded")])
async def test_the_author_may_say_what_a_loss_means(tmp_path: Path, on_lost: str, status: str) -> None:
    mail = Step("mail", careful=True)
    mail.holding["mail"] = asyncio.Event()
    document = chain("mail", mail={"type": "mail", "policy": {"on_lost": on_lost}})
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        run = (await engine.submit(document)).run
        await until_event(engine, run, "node.started", "mail")
        await engine.stop_working(grace_s=0)
    mail.holding.clear()
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        await until_event(engine, run, "run.finished")
        assert (await engine.runs.view(run)).status == status
