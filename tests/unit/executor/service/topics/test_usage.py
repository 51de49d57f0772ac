"""What models used and cost: in the view of a run with its children, by day, workflow and model, after a crash, in a
run made from another one, and after runs are deleted."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.types.registry import Registry
from executor.errors import BadRequest
from executor.open.engine import Engine
from executor.service.upkeep.gc import collect
from executor.service.upkeep.sql import open_asking
from executor.service.views import RunView, UsageView
from tests.support.dev_model import dev_model
from tests.support.documents import chain, document
from tests.support.runs import engine_on, settled

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
RULE: Json = {"text": "Yes.", "usage": {"input_tokens": 1000, "output_tokens": 100, "cached_tokens": 400}}
AGENT: Json = {"type": "agent", "params": {"model": "dev:m", "prompt": "?"}}
COST = "0.0018"  # 600 * 1 + 400 * 0.5 + 100 * 10, of a million


def priced(engine: Engine, price: str = "1/0.5/10") -> None:
    models = engine.parts.services.models
    assert isinstance(models, ModelClient)
    models.endpoints = Endpoints({"DEV": models.endpoints.named[0].url}, {"DEV": price})


async def run(engine: Engine, doc: Json) -> RunView:
    return await settled(engine, (await engine.submit(doc)).run)


def told(found: UsageView | None) -> Any:
    assert found is not None and found.currency == "USD"
    return [(each.key, each.calls, each.unpriced, each.input_tokens, each.cost) for each in (found.total, *found.items)]


async def test_a_run_counts_with_its_children_once(tmp_path: Path) -> None:
    async with (
        dev_model(RULE) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine,
    ):
        priced(engine)
        await engine.workflows.save(chain("a", a=AGENT) | {"name": "below"})
        call = {"type": "run_workflow", "params": {"workflow": "below"}}
        view = await run(
            engine, document("above", "start a", "a b", blocks={"start": {"type": "start"}, "a": AGENT, "b": call})
        )
        assert view.status == "succeeded"
        (child,) = view.children
        below = await engine.runs.view(child.run)
        _, last, by_workflow = await engine.usage.between(by="workflow")
        by_model = (await engine.usage.between(by="model"))[2]
        by_day = (await engine.usage.between(workflow="below"))[2]
    assert told(view.usage) == [("", 2, 0, 2000, "0.0036"), ("dev:m", 2, 0, 2000, "0.0036")]
    assert told(below.usage) == [("", 1, 0, 1000, COST), ("dev:m", 1, 0, 1000, COST)]
    assert view.usage is not None and view.usage.prices == ["WEFT_PRICE_DEV"]
    assert sorted(told(by_workflow)) == [
        ("", 2, 0, 2000, "0.0036"),
        ("above", 1, 0, 1000, COST),
        ("below", 1, 0, 1000, COST),
    ]
    assert told(by_model) == told(view.usage)
    assert last == datetime.now(UTC).date() or last.isoformat() == by_day.items[-1].key
    assert [each.cost for each in by_day.items] == [COST]


async def test_a_run_without_steps_shows_none(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await run(engine, chain("a", a={"type": "function", "params": {"code": "return 1"}}))
        assert view.usage is None
        assert told((await engine.usage.between())[2]) == [("", 0, 0, 0, "0.00")]


async def test_no_price_is_no_price_of_zero(tmp_path: Path) -> None:
    async with dev_model(RULE) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        unknown = await run(engine, chain("a", a=AGENT))
        priced(engine, "0/0")
        free = await run(engine, chain("a", a=AGENT))
        _, _, both = await engine.usage.between(by="model")
    assert told(unknown.usage)[0] == ("", 1, 1, 1000, None) and unknown.usage is not None and unknown.usage.prices == []
    assert told(free.usage)[0] == ("", 1, 0, 1000, "0.00")
    assert told(both) == [("", 2, 1, 2000, "0.00"), ("dev:m", 2, 1, 2000, "0.00")]


async def test_what_a_run_takes_over_is_not_paid_for_again(tmp_path: Path) -> None:
    broken = {"type": "function", "params": {"code": "throw new Error('no')"}}
    doc = document("w", "start a", "a b", blocks={"start": {"type": "start"}, "a": AGENT, "b": broken})
    async with dev_model(RULE) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        priced(engine)
        first = await run(engine, doc)
        assert first.status == "failed"
        again = await settled(engine, (await engine.lifecycle.retry(first.id, "b")).run)
        assert len(await model.calls()) == 1
        _, _, found = await engine.usage.between()
    assert told(found)[0] == ("", 1, 0, 1000, COST) == told(first.usage)[0]
    assert again.usage is None or again.id == first.id


async def test_costs_outlive_deleted_runs(tmp_path: Path) -> None:
    async with dev_model(RULE) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        priced(engine)
        for _ in range(2):
            await run(engine, chain("a", a=AGENT))
        before = (await engine.usage.between())[2]
        deleted = await collect(engine.store, engine.parts.clock.now_ms() + 10_000, 1)
        assert deleted.runs == 2
        assert (await engine.usage.between())[2] == before and before.total.calls == 2


async def test_the_view_of_steps(tmp_path: Path) -> None:
    """As operators read it."""
    path = tmp_path / "weft.db"
    async with dev_model(RULE) as model, engine_on(path, models={"DEV": model.url}) as engine:
        priced(engine)
        ran = await run(engine, chain("a", a=AGENT))
    with closing(open_asking(path, Registry.load())) as asked:
        ((*what, took, usage, cost, prices),) = asked.query(
            "SELECT run_id, workflow, node, n, kind, name, outcome, duration_ms, usage, cost, prices FROM steps"
        )
    assert what == [ran.id, ran.workflow, "a", 1, "model", "dev:m", "succeeded"]
    assert took >= 0 and (cost, prices) == (0.0018, "WEFT_PRICE_DEV")
    assert orjson.loads(usage) == RULE["usage"]


async def test_days_that_cannot_be_asked_for(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        for first, last in (
            (date(2026, 2, 2), date(2026, 2, 1)),
            (date(2020, 1, 1), date(2026, 1, 1)),
            (date.min, None),
        ):
            with pytest.raises(BadRequest):
                await engine.usage.between(first, last)
        first, last, _ = await engine.usage.between(last=date.min)
        assert first == last == date.min
        first, last, _ = await engine.usage.between(last=date(2026, 3, 1))
        assert (first, last) == (date(2026, 1, 31), date(2026, 3, 1))
