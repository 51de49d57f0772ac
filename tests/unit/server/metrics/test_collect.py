"""What `/metrics` says, from the counters of a real engine on a real database."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from executor.kernel.run.meters import NAMES_MAX, OTHERS
from executor.open.engine import Engine
from server.metrics.collect import METRICS
from tests.support.until import until

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def read(client: httpx.AsyncClient) -> Samples:
    """Of `/metrics`, by name and labels."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    found: Samples = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


async def test_what_a_run_does_is_counted_once(
    client: httpx.AsyncClient, engine: Engine, hello: dict[str, Any]
) -> None:
    before = await read(client)
    submitted = await engine.submit(hello, input={})
    await engine.wait_finished(submitted.run, 30)
    await until(lambda: engine.figures.runs == 0)
    after = await read(client)

    def more(name: str, **labels: str) -> float:
        return of(after, name, **labels) - of(before, name, **labels)

    assert more("weft_runs_started_total", workflow="hello") == 1
    assert more("weft_runs_ended_total", workflow="hello", status="succeeded") == 1
    assert more("weft_run_seconds_count", workflow="hello", status="succeeded") == 1
    assert more("weft_run_queued_seconds_count", workflow="hello") == 1
    assert more("weft_attempts_total", block="set", outcome="succeeded") == 1
    assert more("weft_attempt_seconds_count", block="set") == 1
    assert more("weft_commits_total") >= 1
    assert of(after, "weft_commit_seconds_count") == of(after, "weft_commits_total")
    assert of(after, "weft_http_answers_total", route="GET /metrics", status="200") == 1
    assert of(after, "weft_http_seconds_count", route="GET /metrics") == 1
    (build,) = (dict(labels) for (name, labels) in after if name == "weft_build_info")
    assert build == {"version": version("weft"), "python": platform.python_version()}


async def test_a_block_that_fails_and_a_request_that_is_refused(client: httpx.AsyncClient, engine: Engine) -> None:
    document = {
        "format": "weft/1",
        "name": "fails",
        "blocks": {
            "start": {"type": "start"},
            "boom": {"type": "function", "params": {"code": "throw new Error('no')"}},
        },
        "edges": [{"source": "start", "target": "boom"}],
    }
    submitted = await engine.submit(document, input={})
    await engine.wait_finished(submitted.run, 30)
    await client.get("/api/runs/none/such")
    await client.get("/api/runs/none")
    found = await read(client)
    assert of(found, "weft_runs_ended_total", workflow="fails", status="failed") == 1
    assert of(found, "weft_attempts_total", block="function", outcome="failed") >= 1
    assert of(found, "weft_http_answers_total", route="GET /api/runs/{id}", status="404") == 1
    assert of(found, "weft_http_answers_total", route="(none)", status="404") == 1


async def test_what_waits_in_the_database_is_counted(client: httpx.AsyncClient, engine: Engine) -> None:
    document = {
        "format": "weft/1",
        "name": "asks",
        "blocks": {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "OK?"}}},
        "edges": [{"source": "start", "target": "ask"}],
    }
    submitted = await engine.submit(document, input={})

    async def waits() -> bool:
        return (await engine.runs.row(submitted.run)).status == "waiting"

    await until(waits)
    found = await read(client)
    assert of(found, "weft_waits_open", kind="approval") == 1
    assert of(found, "weft_runs_open", status="waiting") == 1
    assert of(found, "weft_attempts_total", block="approval", outcome="waiting") == 1
    assert of(found, "weft_database_bytes") > 0


async def test_every_metric_is_there_and_there_is_no_other(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    shown = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert {name for name in shown if name.startswith("weft_")} == set(METRICS)
    assert "process_cpu_seconds_total" in shown


async def test_a_token_is_needed(locked: httpx.AsyncClient) -> None:
    assert (await locked.get("/metrics")).status_code == 401
    with_token = await locked.get("/metrics", headers={"Authorization": "Bearer the-token"})
    assert with_token.status_code == 200


def test_names_that_people_make_up_are_bounded(engine: Engine) -> None:
    meters = engine.parts.meters
    for n in range(NAMES_MAX + 50):
        meters.run_started(f"workflow-{n}", 0)
    assert len(meters.started.by) == NAMES_MAX + 1
    assert meters.started.by[OTHERS] == 50
