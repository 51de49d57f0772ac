"""One node of a run: what it was given and what it put out, at any attempt and any moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from msgspec.structs import replace

from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.open.engine import Engine
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document

Json = dict[str, Any]
SECRET = "sk-a-very-secret-key"


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    """With a secret and a plain value in the environment."""
    env = {"API_KEY": SECRET, "REGION": "eu-west"}
    engine = await build_engine(replace(settings, env=env, not_secret=("REGION",)))
    yield engine
    await engine.close()


@pytest.fixture
def node(client: httpx.AsyncClient) -> Callable[..., Any]:
    async def read(run: Json, key: str, **query: Any) -> Json:
        response = await client.get(f"/api/runs/{run['run']}/nodes/{quote(key, safe='')}", params=query)
        assert response.status_code == 200, response.text
        return dict(response.json())

    return read


async def test_params_are_shown_as_the_handler_had_them(started: Any, node: Any) -> None:
    greet = {"text": "Hi <input.name>, <start.n> times", "n": "<start.n>", "list": [{"deep": "<workflow.v.w>"}]}
    run = await started(
        document(
            "nodes",
            "start out greet",
            "greet out branch",
            "branch a never",
            blocks={
                "greet": {"type": "set", "name": "Greet", "params": {"value": greet}},
                "branch": {
                    "type": "condition",
                    "params": {"cases": [{"id": "a", "when": "<greet.n> > 2 && 'x<start.n>'"}]},
                },
                "never": {"type": "set"},
            },
            variables={"v": {"w": [1, 2]}},
        ),
        {"name": "Ada", "n": 2},
    )
    found = await node(run, "greet")
    value = {"text": "Hi Ada, 2 times", "n": 2, "list": [{"deep": [1, 2]}]}
    assert found["input"] == {"value": value} and found["output"] == value
    assert (found["key"], found["node"], found["block"], found["name"]) == ("greet", "greet", "greet", "Greet")
    assert (found["status"], found["attempt"], found["route"], found["reused"]) == ("succeeded", 1, "out", False)
    assert found["output_size"] > 10 and found["output_truncated"] is False
    (attempt,) = found["attempts"]
    assert attempt["started_seq"] < attempt["finished_seq"] <= found["seq"]
    branch = await node(run, "branch")
    code = {"$code": "<greet.n> > 2 && 'x<start.n>'", "values": {"greet.n": 2, "start.n": "2"}}
    assert branch["input"] == {"cases": [{"id": "a", "when": code}]} and branch["route"] is None
    never = await node(run, "never")
    assert (never["status"], never["reason"], never["because"]) == ("skipped", "pruned", "branch")
    assert never["input"] is None and never["output"] is None and never["attempt"] == 0


async def test_secrets_are_redacted_and_plain_values_are_not(started: Any, node: Any) -> None:
    code = "return '${API_KEY}' + ' ' + ${REGION}"
    run = await started(
        document(
            "nodes",
            "start out set",
            "set out code",
            blocks={
                "set": {"type": "set", "params": {"value": ["Bearer ${API_KEY}", "${REGION}", "${UNSET_NAME}"]}},
                "code": {"type": "function", "params": {"code": code}},
            },
        ),
        {"echo": f"{SECRET}!"},
    )
    found = await node(run, "set")
    assert found["input"] == {"value": ["Bearer [redacted]", "eu-west", "${UNSET_NAME}"]}
    program = await node(run, "code")
    assert program["input"]["code"]["values"] == {"${API_KEY}": "[redacted]", "${REGION}": "eu-west"}
    for key in ("set", "code"):
        assert SECRET not in str(await node(run, key))


async def test_iterations_and_branches_have_their_own_values(started: Any, node: Any) -> None:
    run = await started(
        document(
            "nodes",
            "start out fan",
            "fan body loop",
            "loop body work",
            blocks={
                "fan": {"type": "parallel", "params": {"mode": "each", "items": "<start.items>"}},
                "loop": {
                    "type": "loop",
                    "parent": "fan",
                    "params": {"mode": "while", "condition": "<loop.index> < <parallel.item>"},
                },
                "work": {
                    "type": "set",
                    "parent": "loop",
                    "params": {"value": {"item": "<parallel.item>", "turn": "<loop.index>", "last": "<work.turn>"}},
                },
            },
        ),
        {"items": [2, 3]},
    )
    third = await node(run, "work@fan[1]/loop#2")
    assert third["input"] == {"value": {"item": 3, "turn": 2, "last": 1}}
    assert third["path"] == "fan[1]/loop#2" and third["output"] == third["input"]["value"]
    assert (await node(run, "work@fan[0]/loop#0"))["input"]["value"]["last"] is None
    missing = await node(run, "work@fan[0]/loop#2")
    assert (missing["status"], missing["attempts"], missing["input"]) == ("pending", [], None)

    fan = await node(run, "fan")
    assert (fan["type"], fan["node"], fan["status"]) == ("parallel", "fan", "succeeded")
    assert fan["input"]["items"] == [2, 3] and len(fan["output"]["results"]) == 2
    assert (await node(run, "fan:start"))["output"] == {"count": 2}
    test = await node(run, "loop:end@fan[1]")
    assert test["input"]["condition"]["values"] == {"loop.index": 3, "parallel.item": 3}
    loop = await node(run, "loop@fan[1]")
    assert loop["input"]["condition"]["values"] == {"loop.index": 0, "parallel.item": 3}
    assert len(loop["output"]["results"]) == 3


async def test_attempts_one_by_one(started: Any, node: Any, client: httpx.AsyncClient) -> None:
    policy = {"retry": {"max_attempts": 3, "initial_ms": 1, "jitter": 0}}
    run = await started(
        document(
            "nodes",
            "start out bad",
            "bad error fix",
            blocks={
                "bad": {"type": "email", "params": {"to": "<start.to>", "subject": "s"}, "policy": policy},
                "fix": {"type": "set", "params": {"value": "<bad.error.code>"}},
            },
        ),
        {"to": "not\nan address"},
    )
    found = await node(run, "bad")
    assert (found["status"], found["route"], found["output"]) == ("failed", "error", None)
    assert found["error"]["code"] == "params_invalid" and found["attempts"][-1]["error"] == found["error"]
    assert found["input"] == {"to": "not\nan address", "subject": "s"}
    missing = await client.get(f"/api/runs/{run['run']}/nodes/bad?attempt=7")
    assert (missing.status_code, missing.json()["code"]) == (404, "attempt_not_found")


async def test_a_retried_attempt_has_its_own_error(
    engine: Engine, started: Any, node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executor.errors import BlockError
    from executor.kernel.handler.base import Done, StepContext

    async def fails_twice(ctx: StepContext) -> Done:
        if ctx.attempt < 3:
            raise BlockError(f"no {ctx.attempt}", code="flaky")
        return Done({"attempt": ctx.attempt})

    monkeypatch.setattr(engine.parts.registry.handler("email"), "run", fails_twice)
    policy = {"retry": {"max_attempts": 3, "initial_ms": 1, "jitter": 0}}
    run = await started(
        document(
            "nodes",
            "start out flaky",
            blocks={"flaky": {"type": "email", "params": {"to": "a@b.de", "subject": "s"}, "policy": policy}},
        )
    )
    last = await node(run, "flaky")
    assert (last["status"], last["attempt"], last["output"], last["error"]) == (
        "succeeded",
        3,
        {"attempt": 3},
        None,
    )
    assert [(a["attempt"], a["status"]) for a in last["attempts"]] == [
        (1, "retrying"), (2, "retrying"), (3, "succeeded"),
    ]  # fmt: skip
    second = await node(run, "flaky", attempt=2)
    assert (second["status"], second["error"]["message"], second["output"]) == ("retrying", "no 2", None)
    assert second["input"] == last["input"]


async def test_references_that_cannot_be_filled(started: Any, node: Any) -> None:
    run = await started(
        document(
            "nodes",
            "start out ask",
            "ask a use",
            blocks={
                "ask": {"type": "condition", "params": {"cases": [{"id": "a"}]}},
                "use": {"type": "set", "params": {"value": "<ask.nothing>"}},
            },
        )
    )
    found = await node(run, "use")
    assert found["status"] == "failed" and found["error"]["code"] == "reference_failed"
    assert found["input"] is None and found["input_error"]["code"] == "reference_failed"
    assert found["input_error"]["message"] == found["error"]["message"]


async def test_time_travel(started: Any, node: Any) -> None:
    run = await started(
        document(
            "nodes",
            "start out one",
            "one out read",
            "read out two",
            blocks={
                "one": {"type": "variables", "params": {"assign": {"v": 1}}},
                "read": {"type": "set", "params": {"value": "<workflow.v>"}},
                "two": {"type": "variables", "params": {"assign": {"v": 2}}},
            },
            variables={"v": 0},
        )
    )
    now = await node(run, "read")
    assert now["input"] == {"value": 1}, "the value of then, not of the end"
    (attempt,) = now["attempts"]
    before = await node(run, "read", seq=attempt["started_seq"] - 1)
    assert (before["status"], before["input"], before["attempts"]) == ("pending", None, [])
    during = await node(run, "read", seq=attempt["started_seq"])
    assert (during["status"], during["input"], during["output"]) == ("running", {"value": 1}, None)
    after = await node(run, "read", seq=attempt["finished_seq"])
    assert (after["status"], after["output"], after["seq"]) == ("succeeded", 1, attempt["finished_seq"])
    assert (await node(run, "read", seq=10**6))["seq"] == now["seq"]


async def test_of_a_run_that_waits_and_of_one_that_was_cancelled(
    client: httpx.AsyncClient, asking: Json, started: Any, node: Any
) -> None:
    run = await started(asking, {"text": "T"})
    found = await node(run, "ask")
    assert (found["status"], found["output"]) == ("waiting", None)
    assert found["input"]["show"] == {"invoice": "INV-1", "text": "T"}
    await client.post(run["urls"]["cancel"])
    await client.get(run["urls"]["events"])
    assert (await node(run, "ask"))["status"] == "cancelled"
    assert (await node(run, "ask", seq=found["seq"]))["status"] == "waiting"


async def test_large_values_come_in_full_or_as_a_preview(client: httpx.AsyncClient, started: Any, node: Any) -> None:
    run = await started(
        document(
            "nodes",
            "start out big",
            "big out pass",
            blocks={
                "big": {"type": "set", "params": {"value": {"list": "<start.list>"}}},
                "pass": {"type": "set", "params": {"value": "<big.list>"}},
            },
        ),
        {"list": ["é" * 100] * 2000},
    )
    full = await node(run, "pass")
    assert full["output"] == ["é" * 100] * 2000 and full["output_truncated"] is False
    assert full["output_size"] > 400_000, "so it is in a blob"
    cut = await node(run, "pass", preview=1000)
    assert cut["output"] is None and cut["output_truncated"] is True and cut["output_size"] == full["output_size"]
    assert cut["output_preview"].startswith('["ééé') and len(cut["output_preview"]) <= 1003
    assert cut["input"] is None and cut["input_truncated"] is True and cut["input_preview"].startswith('{"value":["éé')
    assert cut["status"] == "succeeded"
    file = await client.get(f"/api/runs/{run['run']}/nodes/pass?only=output")
    assert file.json() == full["output"]
    assert file.headers["content-disposition"] == 'attachment; filename="pass-output.json"'
    assert (await client.get(f"/api/runs/{run['run']}/nodes/pass?only=input")).json() == full["input"]


async def test_keys_that_name_nothing(client: httpx.AsyncClient, started: Any, hello: Json) -> None:
    run = await started(hello)
    for key in ("none", "greet@loop#1", "greet@", "@", "greet#1", "", "a/b/c", "start:end"):
        response = await client.get(f"/api/runs/{run['run']}/nodes/{quote(key, safe='')}")
        if key == "greet@":
            assert response.status_code == 200, "the root, written out"
        else:
            assert response.status_code == 404, key
            assert response.headers["content-type"] == "application/problem+json"
    assert (await client.get("/api/runs/none/nodes/greet")).status_code == 404
    base = f"/api/runs/{run['run']}/nodes/greet"
    for query in ("seq=0", "attempt=x", "preview=-1", "only=both", "only=output&preview=x"):
        assert (await client.get(f"{base}?{query}")).status_code == 400, query
    nothing = await client.get(f"{base}?only=input&seq=1")
    assert (nothing.status_code, nothing.json()["code"]) == (404, "no_input")


async def test_a_checkpoint_is_shown_as_it_stands(engine: Engine, asking: Json, started: Any, node: Any) -> None:
    run = await started(asking)
    assert (await node(run, "ask"))["checkpoint"] is None
    row = await engine.runs.row(run["run"])
    kept = CheckpointRow(run["run"], "ask", 1, 1_700_000_000_000, b'{"items":[1,2,3]}')
    await engine.store.put_checkpoint(row.epoch, kept)
    shown = {"attempt": 1, "at_ms": 1_700_000_000_000, "value_size": 17}
    assert (await node(run, "ask"))["checkpoint"] == shown | {"value": {"items": [1, 2, 3]}, "value_truncated": False}
    cut = (await node(run, "ask", preview=8))["checkpoint"]
    assert cut == shown | {"value": None, "value_truncated": True, "value_preview": '{"items"...'}
    assert (await node(run, "ask", seq=3))["checkpoint"] is None, "it is no event: what was stored then is unknown"
    assert (await node(run, "start"))["checkpoint"] is None


async def test_an_output_for_which_the_view_of_the_run_has_no_room_is_at_its_node(
    started: Any, node: Any, client: httpx.AsyncClient
) -> None:
    names = [f"long{n}" for n in range(5)]
    long = {"type": "function", "params": {"code": "return 'x'.repeat(1000000)"}}
    run = await started(document("nodes", *(f"start out {name}" for name in names), blocks=dict.fromkeys(names, long)))
    view = (await client.get(f"/api/runs/{run['run']}")).json()
    assert view["status"] == "succeeded", view["error"]
    cut = [shown for shown in view["nodes"] if shown.get("output_truncated")]
    assert len(cut) == 1, "four of a million bytes fit in 4 MiB"
    assert "output" not in cut[0] or cut[0]["output"] is None
    whole = await node(run, cut[0]["key"])
    assert whole["output_size"] == cut[0]["output_size"] and not whole["output_truncated"]
    assert whole["output"]["result"] == "x" * 1_000_000
