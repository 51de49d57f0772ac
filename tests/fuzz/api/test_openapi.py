"""Requests made from openapi.json, right ones and wrong ones, against a real server: never a 5xx, and always what the
document says. Each tag of the document is a test, so that a failure is found again quickly; then the links between
routes, in chains."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from schemathesis import BaseSchema, Config
from schemathesis.engine import Status, events, from_schema

from server.routes import TABLE
from tests.e2e.conftest import ServerProcess
from tests.fuzz.api.promises import filter_failure, meet
from tests.fuzz.api.world import BEARER, TOKEN, World
from tests.load.size import size

SHOWN = [spec for spec in TABLE if spec.documented]
TAGS = sorted({spec.tag for spec in SHOWN})
# From eleven on hypothesis would look for requests that are taken, for minutes where few are possible.
EXAMPLES = 10
CHAINS, STEPS = 20, 8
PHASES = ("examples", "coverage", "fuzzing", "stateful")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("openapi")
    process = ServerProcess(folder, {"WEFT_TOKEN": TOKEN}, log=folder / "log")
    yield process
    if process.running:
        process.kill()


@pytest.fixture
def world(server: ServerProcess) -> Iterator[World]:
    """New things for each test, because other tests delete theirs. The server is as well afterwards as before."""
    yield World(server)
    assert httpx.get(f"{server.url}/healthz", timeout=30).status_code == 200
    log = (server.folder / "log").read_text()
    assert "Traceback" not in log, log[-5000:]


class Found:
    """`answers`: the statuses of each operation. `wrong`: what was wrong with the answers, each with the curl commands
    that lead there."""

    def __init__(self) -> None:
        self.answers: defaultdict[str, set[int]] = defaultdict(set)
        self.wrong: list[str] = []

    def take(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            self.wrong.append(f"{event.label}: {event.value!r}")
        if not isinstance(event, events.ScenarioFinished):
            return
        for name, node in event.recorder.cases.items():
            response = event.recorder.find_response(case_id=name)
            if response is not None and node.value.method == node.value.operation.method.upper():
                self.answers[node.value.operation.label].add(response.status_code)
        for checks in event.recorder.checks.values():
            for check in checks:
                if check.status == Status.FAILURE and (failed := check.failure_info):
                    what = f"{event.recorder.label}: {check.name}: {failed.failure.title} {failed.failure.message}"
                    self.wrong.append("\n".join([what, *(step.curl for step in failed.steps[:-1]), failed.code_sample]))


def find(
    world: World,
    *phases: str,
    tag: str | None = None,
    headers: dict[str, str] = BEARER,
    examples: int = EXAMPLES,
    seed: int | None = None,
) -> Found:
    """Without a seed the same requests each time."""
    config: dict[str, Any] = {
        "seed": seed or 0,
        "continue-on-failure": True,
        "request-timeout": 30,
        "headers": headers,
        "generation": {"deterministic": seed is None, "max-examples": examples, "no-shrink": True, "database": "none"},
        "phases": {
            **{name: {"enabled": name in phases} for name in PHASES},
            "stateful": {"enabled": "stateful" in phases, "max-steps": STEPS},
        },
        "checks": {
            "positive_data_acceptance": {"enabled": False},  # `what_is_documented_is_taken` in its place
            "missing_required_header": {"expected-statuses": ["400", "401", "415", "422", "428"]},
        },
        "output": {"sanitization": {"enabled": False}},
    }
    url = f"{world.url}/openapi.json"
    schema: BaseSchema = schemathesis.openapi.from_url(url, config=Config.from_dict(config))
    schema = schema.include(tag=tag) if tag else schema
    schema.hook(filter_failure)
    schema.hook(meet(world, names="stateful" not in phases))
    found = Found()
    for event in from_schema(schema).execute():
        found.take(event)
    return found


@pytest.mark.parametrize("tag", TAGS)
def test_every_operation_keeps_its_word(world: World, tag: str) -> None:
    """Values at every bound, then random ones; right and wrong."""
    found = find(world, "coverage", "fuzzing", tag=tag)
    assert found.wrong == []
    assert set(found.answers) >= {f"{spec.method} {spec.path}" for spec in SHOWN if spec.tag == tag}


def test_without_the_token_nothing_is_told(world: World) -> None:
    """Whatever the address and the body: before they are looked at, the token is."""
    found = find(world, "coverage", headers={})
    assert found.wrong == []
    for spec in SHOWN:
        answers = found.answers[f"{spec.method} {spec.path}"]
        if not spec.public:
            assert 401 in answers and answers <= {401, 415}, spec
        else:
            assert 401 not in answers, spec


def test_chains_of_links(world: World) -> None:
    """Submit, look, wait, answer, signal, cancel, run again: with what the answer before held."""
    found = find(world, "stateful", examples=CHAINS)
    assert found.wrong == []
    assert len(found.answers) > CHAINS // 2


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_other_requests_in_each_round(server: ServerProcess) -> None:
    until, seed = time.monotonic() + float(os.environ.get("WEFT_SOAK_SECONDS", "0")), 0
    while not seed or time.monotonic() < until:
        seed += 1
        found = find(World(server), "fuzzing", "stateful", examples=size(2, EXAMPLES), seed=seed)
        assert found.wrong == [], f"seed {seed}"
