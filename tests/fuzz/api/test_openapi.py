"""Requests made from openapi.json, right ones and wrong ones, against a real server: never a 5xx, and always what the
document says. Each tag of the document is a test, so that a failure is found again quickly; then the links between
routes, in chains."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from typing import Any

import pytest
import schemathesis
from schemathesis import BaseSchema, Config
from schemathesis.engine import Status, events, from_schema

from server.api import TABLE
from tests.fuzz.api.promises import filter_failure, meet
from tests.fuzz.api.world import BEARER, TIMEOUT_S, World
from tests.support.server import SyncServerProcess
from tests.support.size import size

pytestmark = pytest.mark.proof

SHOWN = [spec for spec in TABLE if spec.documented]
# The token of the server, with which these requests come, has no sessions.
OF_USERS = ("/api/me/sessions", "/api/me/sessions/{id}", "/api/sessions/{id}")
OF_DRAFTS = ("/api/drafts/{id}/listen", "/api/drafts/{id}/poll")  # only those with such a trigger
# what they take only a provider can say
OF_PROVIDERS = ("/api/oauth/code", "/api/mcp/check", "/api/blocks/{type}/choices")
TAGS = sorted({spec.tag for spec in SHOWN})
# From eleven on hypothesis would look for requests that are taken, for minutes where few are possible.
EXAMPLES = size(5, 10)
CHAINS, STEPS = size(20, 100), 8


class Found:
    """`answers`: the statuses of each operation. `links`: those that led to an answer of 2xx, as (from, to). `wrong`:
    what was wrong with the answers, each with the curl commands that lead there."""

    def __init__(self) -> None:
        self.answers: defaultdict[str, set[int]] = defaultdict(set)
        self.links: set[tuple[str, str]] = set()
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
                label = node.value.operation.label
                self.answers[label].add(response.status_code)
                if node.transition and node.is_transition_applied and response.status_code < 300:
                    self.links.add((event.recorder.cases[node.transition.parent_id].value.operation.label, label))
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
    """Without a seed the same requests each time: then nothing that an answer held is used, but along links."""
    learning = {"extra-data-sources": {"responses": seed is not None}}
    config: dict[str, Any] = {
        "seed": seed or 0,
        "continue-on-failure": True,
        "request-timeout": TIMEOUT_S,
        "suppress-health-check": ["too_slow"],  # of the machine, when it is busy
        "headers": headers,
        "generation": {"deterministic": seed is None, "max-examples": examples, "no-shrink": True, "database": "none"},
        "phases": {
            "examples": {"enabled": False},  # they are among the values at bounds
            "coverage": {"enabled": "coverage" in phases, **learning},
            "fuzzing": {"enabled": "fuzzing" in phases, "error-feedback": {"enabled": seed is not None}, **learning},
            "stateful": {"enabled": "stateful" in phases, "max-steps": STEPS},
        },
        "checks": {
            "positive_data_acceptance": {"enabled": False},  # `what_is_documented_is_accepted` in its place
            # 428 is what RFC 6585 has for a missing If-Match; it is documented, which schemathesis does not look at.
            "missing_required_header": {"expected-statuses": ["400", "401", "415", "422", "428"]},
        },
        "output": {"sanitization": {"enabled": False}},
    }
    url = f"{world.url}/openapi.json"
    schema: BaseSchema = schemathesis.openapi.from_url(url, config=Config.from_dict(config))
    schema = schema.include(tag=tag) if tag else schema
    schema.hook(filter_failure)
    schema.hook(meet(world))
    found = Found()
    for event in from_schema(schema).execute():
        found.take(event)
    return found


@pytest.mark.parametrize("tag", TAGS)
def test_every_operation_keeps_its_word(world: World, tag: str) -> None:
    """Values at every bound, then random ones; right and wrong."""
    found = find(world, "coverage", "fuzzing", tag=tag)
    assert found.wrong == []
    for spec in SHOWN:
        if spec.tag == tag and spec.path not in OF_USERS + OF_PROVIDERS + OF_DRAFTS:
            answers = found.answers[f"{spec.method} {spec.path}"]
            assert min(answers) < 300, f"no request to {spec.method} {spec.path} was taken: {answers}"


def test_without_the_token_everything_is_refused(world: World) -> None:
    """Whatever the address and the body: before they are looked at, the token is."""
    found = find(world, "fuzzing", headers={}, examples=2)
    assert found.wrong == []
    for spec in SHOWN:
        answers = found.answers[f"{spec.method} {spec.path}"]
        if not spec.public:
            assert 401 in answers and answers <= {401, 415}, spec
        else:
            assert 401 not in answers, spec


def test_chains_of_links(world: World) -> None:
    """Requests by chance, each with what an answer before it held."""
    found = find(world, "stateful", examples=CHAINS)
    assert found.wrong == []
    assert len(found.links) > 3  # test_links.py follows each one; here it is chance


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_other_requests_in_each_round(server: SyncServerProcess) -> None:
    until, seed = time.monotonic() + float(os.environ.get("WEFT_SOAK_SECONDS", "0")), 0
    while not seed or time.monotonic() < until:
        seed += 1
        found = find(World(server), "fuzzing", "stateful", examples=size(1, 10), seed=seed)
        assert found.wrong == [], f"seed {seed}"
