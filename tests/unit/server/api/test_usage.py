from __future__ import annotations

import httpx
import pytest
from msgspec.structs import replace

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.client import ModelClient, Priced
from executor.blocks.llm.endpoints import Endpoints
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.usage import Spent, UsageRow
from executor.open.engine import Engine
from tests.support.rows import T0, owned_run, record

DAY = 20_000  # 2024-10-04


@pytest.fixture
async def used(engine: Engine) -> None:
    run = await owned_run(engine.store, "r", owner="another")
    row = UsageRow("r", DAY, "expense", "dev:m", "prices of 2026-11-01", Spent(2, 0, 30, 10, 0, 5, 0, 1_500_000))
    rows = (row, replace(row, day=DAY + 1, workflow="other", prices="", spent=Spent(1, 1, 7)))
    await engine.store.append(Append("r", run.epoch, run.seq, (record(),), T0, usage=rows))


@pytest.mark.usefixtures("used")
async def test_sums(client: httpx.AsyncClient) -> None:
    period = {"from": "2024-10-01", "to": "2024-10-31"}
    by_day = (await client.get("/api/usage", params=period)).json()
    assert {name: by_day[name] for name in ("from", "to", "by", "workflow", "currency", "prices")} == {
        **period,
        "by": "day",
        "workflow": None,
        "currency": "USD",
        "prices": ["prices of 2026-11-01"],
    }
    shown = [(each["key"], each["calls"], each["unpriced"], each["cost"]) for each in by_day["items"]]
    assert shown == [("2024-10-04", 2, 0, "0.0015"), ("2024-10-05", 1, 1, None)]
    assert (by_day["total"]["input_tokens"], by_day["total"]["cost"]) == (37, "0.0015")
    by_workflow = (await client.get("/api/usage", params={**period, "by": "workflow"})).json()
    assert [each["key"] for each in by_workflow["items"]] == ["expense", "other"]
    one = (await client.get("/api/usage", params={**period, "by": "model", "workflow": "other"})).json()
    assert [(each["key"], each["cost"]) for each in one["items"]] == [("dev:m", None)]


@pytest.mark.usefixtures("used")
async def test_without_days_it_is_the_last_thirty(client: httpx.AsyncClient) -> None:
    found = (await client.get("/api/usage")).json()
    assert found["items"] == [] and found["total"]["cost"] == "0.00" and found["from"] < found["to"]


@pytest.mark.parametrize(
    "params", [{"from": "yesterday"}, {"to": "2026-13-01"}, {"by": "hour"}, {"from": "2026-02-02", "to": "2026-01-01"}]
)
async def test_what_cannot_be_asked(client: httpx.AsyncClient, params: dict[str, str]) -> None:
    assert (await client.get("/api/usage", params=params)).status_code == 400


async def test_models_with_their_prices(client: httpx.AsyncClient) -> None:
    endpoints = {each["name"]: each for each in (await client.get("/api/models")).json()["endpoints"]}
    openai = endpoints["openai"]
    assert (openai["host"], openai["ready"]) == ("api.openai.com", False)
    assert {"name": "gpt-5-mini", "input": 0.25, "output": 2.0} in openai["models"]
    assert all(each["input"] and each["output"] for each in openai["models"])


def test_prices_of_the_operator_come_first_and_an_endpoint_without_a_key_is_ready() -> None:
    endpoints = Endpoints({"LOCAL": "http://127.0.0.1:1/v1"}, {"LOCAL": "llama=0.5/2", "OPENAI": "gpt-5-mini=9/9"})
    local, _, openai = ModelClient(GuardedClient(), endpoints, {}).offered()
    assert (local.name, local.ready, local.models) == ("local", True, [Priced("llama", 0.5, 2.0)])
    assert openai.models[0] == Priced("gpt-5-mini", 9.0, 9.0)
    assert [each.name for each in openai.models].count("gpt-5-mini") == 1
    assert ModelClient(GuardedClient(), endpoints, {"OPENAI_API_KEY": "k"}).offered()[1].ready
