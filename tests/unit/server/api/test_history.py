"""A run as it stood at any event, and two runs side by side."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from executor.service.views import diff as diff_view
from tests.support.documents import document
from tests.unit.executor.service.upkeep.conftest import block

Json = dict[str, Any]


@pytest.fixture
def sums() -> Json:
    """Adds 0, 1, 2 to a variable in a loop, asks a person, and puts out what the input says."""
    add = {"assign": [{"name": "sum", "op": "increment", "value": "<loop.index>"}]}
    flow = document(
        "sums",
        "start loop",
        "loop body add",
        "loop ask",
        "ask approve end",
        blocks={
            "loop": block("loop", mode="for", count=3),
            "add": {"type": "variables", "parent": "loop", "params": add},
            "ask": block("approval", title="Go on?"),
            "end": block("set", value={"sum": "<workflow.sum>", "x": "<input.x>", "list": "<input.list>"}),
        },
    )
    return {**flow, "variables": {"sum": 0}}


async def state(client: httpx.AsyncClient, run: str, seq: int | None = None) -> Json:
    answer = await client.get(f"/api/runs/{run}/state", params={"seq": seq} if seq else {})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def diff(client: httpx.AsyncClient, a: str, b: str) -> Json:
    answer = await client.get(f"/api/runs/{a}/diff/{b}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events(client: httpx.AsyncClient, run: str) -> list[Json]:
    answer = await client.get(f"/api/runs/{run}/events", headers={"accept": "application/json"})
    return list(answer.json()["events"])


async def answered(client: httpx.AsyncClient, run: Json, action: str = "approve") -> None:
    (wait,) = (await client.get("/api/waits", params={"run": run["run"]})).json()["waits"]
    token = wait["link"].rpartition("/")[2]
    assert (await client.post(f"/api/resume/{token}", json={"action": action})).status_code == 200


async def finished(client: httpx.AsyncClient, engine: Engine, run: str) -> Json:
    await engine.wait_finished(run, 60)
    return dict((await client.get(f"/api/runs/{run}")).json())


async def test_the_state_at_every_event_agrees_with_the_journal(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    run = await started(sums, {"x": 1})
    assert run["status"] == "waiting"
    told = await events(client, run["run"])
    sum_so_far, decided = 0, set()
    for event in told:
        found = await state(client, run["run"], event["seq"])
        assert (found["seq"], found["last_seq"], found["at_ms"]) == (event["seq"], len(told), event["at_ms"])
        if event["type"] == "variables.patched":
            sum_so_far = [0, 1, 3][int(event["path"].partition("#")[2])]
        if event["type"] in ("node.succeeded", "region.exited", "region.sized"):
            decided.add(event["key"])
        assert found["variables"] == {"sum": sum_so_far}
        assert {node["key"] for node in found["nodes"] if node["status"] == "succeeded"} == decided
        assert all("output" not in node or node["key"].startswith("loop:start") for node in found["nodes"])
    assert found["status"] == "waiting" and found["phase"] == "running"
    assert [(wait["key"], wait["kind"]) for wait in found["waits"]] == [("ask", "approval")]
    assert found == await state(client, run["run"])


async def test_the_middle_of_a_loop(client: httpx.AsyncClient, sums: Json, started: Any) -> None:
    run = await started(sums, {"x": 1})
    (seq,) = [
        e["seq"] for e in await events(client, run["run"]) if e["key"] == "add@loop#1" and e["type"] == "node.started"
    ]
    found = await state(client, run["run"], seq)
    assert found["status"] == "running"
    assert found["containers"] == [{"key": "loop", "kind": "loop", "count": 3, "opened": 2, "closed": 1}]
    assert [scope["path"] for scope in found["scopes"]] == ["", "loop#1"]
    assert {node["key"]: node["status"] for node in found["nodes"]}["add@loop#1"] == "running"
    why = (await client.get(f"/api/runs/{run['run']}/why", params={"node": "ask", "seq": seq})).json()["why"]
    assert why == [{"key": "ask", "state": "pending", "reasons": ["waits for 'loop:end' (pending)"]}]
    now = (await client.get(f"/api/runs/{run['run']}/why", params={"node": "ask"})).json()["why"]
    assert now[0]["state"] == "waiting"


async def test_the_end_and_what_lies_behind_it(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    run = await started(sums, {"x": 1})
    await engine.cancel(run["run"], "enough")
    await finished(client, engine, run["run"])
    found = await state(client, run["run"], 10_000)
    assert (found["status"], found["phase"], found["seq"]) == ("cancelled", "finished", found["last_seq"])
    assert found["waits"] == [] and {n["key"]: n["status"] for n in found["nodes"]}["ask"] == "cancelled"


async def test_what_is_no_run_or_no_event(client: httpx.AsyncClient, sums: Json, started: Any) -> None:
    run = await started(sums)
    assert (await client.get("/api/runs/unknown/state")).status_code == 404
    assert (await client.get(f"/api/runs/{run['run']}/state?seq=0")).status_code == 400
    assert (await client.get(f"/api/runs/{run['run']}/why?seq=x")).status_code == 400
    assert (await client.get(f"/api/runs/{run['run']}/diff/unknown")).json()["code"] == "run_not_found"
    assert (await client.get(f"/api/runs/unknown/diff/{run['run']}")).json()["code"] == "run_not_found"


async def test_two_runs_of_the_same_are_the_same(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    runs = []
    for _ in range(2):
        run = await started(sums, {"x": 1})
        await answered(client, run)
        runs.append(await finished(client, engine, run["run"]))
    found = await diff(client, runs[0]["id"], runs[1]["id"])
    assert found["same"] and found["diverged"] is None and found["same_plan"]
    assert (found["nodes"], found["only_a"], found["only_b"], found["differing"]) == ([], [], [], 0)
    assert found["equal"] == len(runs[0]["nodes"])


async def test_another_input_shows_where_it_comes_out(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    runs = []
    for input in ({"x": 1, "list": [1, 2]}, {"x": "one", "list": [1, 3, 4]}):
        run = await started(sums, input)
        await answered(client, run)
        runs.append((await finished(client, engine, run["run"]))["id"])
    found = await diff(client, *runs)
    assert not found["same"]
    # the trigger puts out the input, so the journals part at its end
    assert found["diverged"]["a"]["key"] == "start" and found["diverged"]["fields"] == ["output"]
    assert {(one["pointer"], one["a"], one["b"]) for one in found["input"]} == {
        ("/x", "1", '"one"'),
        ("/list/1", "2", "3"),
        ("/list/2", None, "4"),
    }
    (end,) = [node for node in found["nodes"] if node["key"] == "end"]
    assert {one["pointer"] for one in end["output"]} == {"/x", "/list/1", "/list/2"}
    assert [node["key"] for node in found["nodes"]] == ["start", "end"]


async def test_another_answer_shows_the_other_way(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    runs = []
    for action in ("approve", "reject"):
        run = await started(sums, {"x": 1})
        await answered(client, run, action)
        runs.append((await finished(client, engine, run["run"]))["id"])
    found = await diff(client, *runs)
    assert found["diverged"]["a"]["key"] == "ask" and found["diverged"]["a"]["type"] == "node.succeeded"
    nodes = {node["key"]: (node["a"], node["b"]) for node in found["nodes"]}
    assert (nodes["ask"][0]["route"], nodes["ask"][1]["route"]) == ("approve", "out")
    assert (nodes["end"][0]["status"], nodes["end"][1]["status"]) == ("succeeded", "skipped")


async def test_runs_of_different_versions_and_of_different_length(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    first = await started(sums, {"x": 1})
    longer = {**sums, "blocks": {**sums["blocks"], "loop": block("loop", mode="for", count=4)}}
    second = await started(longer, {"x": 1})
    found = await diff(client, first["run"], second["run"])
    assert not found["same_plan"] and not found["same"]
    assert found["diverged"]["a"]["key"] == "loop:start"
    assert found["only_a"] == [] and found["only_b"] == ["add@loop#3"]
    back = await diff(client, second["run"], first["run"])
    assert (back["only_a"], back["only_b"]) == (found["only_b"], found["only_a"])


async def test_one_journal_is_the_beginning_of_the_other(
    client: httpx.AsyncClient, engine: Engine, sums: Json, started: Any
) -> None:
    waiting = await started(sums, {"x": 1})
    done = await started(sums, {"x": 1})
    await answered(client, done)
    await finished(client, engine, done["run"])
    found = await diff(client, waiting["run"], done["run"])
    assert found["diverged"]["a"] is None and found["diverged"]["b"]["type"] == "wait.closed"
    assert [node["key"] for node in found["nodes"]] == ["ask"]
    assert found["only_b"] == ["end"]


async def test_large_outputs_are_compared_as_well(client: httpx.AsyncClient, engine: Engine, started: Any) -> None:
    runs = []
    for letter in "aab":
        code = f"return {{ head: 'same', tail: '{letter}'.repeat(300000) }}"
        run = await started(document("large", "start long", blocks={"long": block("function", code=code)}))
        runs.append((await finished(client, engine, run["run"]))["id"])
    assert (await diff(client, runs[0], runs[1]))["same"]
    found = await diff(client, runs[0], runs[2])
    (node,) = found["nodes"]
    (value,) = node["output"]
    assert value["pointer"] == "/result/tail"
    assert value["a"].startswith('"aaa') and len(value["a"]) == diff_view.PREVIEW_CHARS + 1


async def test_differences_are_bounded(
    client: httpx.AsyncClient, engine: Engine, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_view, "NODES_MAX", 2)
    runs = []
    for factor in (1, 2):
        code = f"return Array.from({{length: 80}}, (_, i) => (i + 1) * {factor})"
        blocks = {f"b{n}": block("function", code=code) for n in range(4)}
        run = await started(document("many", *(f"start b{n}" for n in range(4)), blocks=blocks))
        runs.append((await finished(client, engine, run["run"]))["id"])
    found = await diff(client, *runs)
    assert (len(found["nodes"]), found["differing"]) == (2, 4)
    assert all(len(node["output"]) == diff_view.VALUES_MAX and node["more"] for node in found["nodes"])
