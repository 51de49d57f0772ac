"""Durable functions, killed at every third commit (at every one in `make soak`), end as they do without a crash, and do
nothing twice unasked.
Those of `examples` are in test_durable_examples.py."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from executor.open.testing.crashes import crash_everywhere
from tests.support.durable_functions import branches, delivering, marked, outside, queue, visiting
from tests.support.size import size

pytestmark = pytest.mark.proof


@pytest.mark.parametrize(
    ("flow", "input", "answers", "output"),
    [
        (visiting, {}, {}, ["a is closed", "b is closed", "too slow"]),
        (delivering, {}, {"courier": "here"}, ["here", "goodbye work", "goodbye home"]),
        (branches, {}, {}, ["slow again", "quick again"]),
        (marked, {}, {}, ["new a again", "new b again", "True"]),
        (
            queue,
            {},
            {},
            [
                f"worker {w} did {n} as number {at}"
                for at, (w, n) in enumerate([(0, 0), (0, 3), (0, 4), (1, 1), (2, 2)])
            ],
        ),
    ],
    ids=[
        "retries",
        "callback-and-children",
        "branches",
        "marks",
        "queue",
    ],
)
@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_killed_at_every_commit(
    flow: weft.DurableFunction[..., Any], input: dict[str, Any], answers: dict[str, Any], output: Any
) -> None:
    outside.clear()
    report = await crash_everywhere(flow, input, answers=answers, outside=outside, every=size(3, 1))
    assert (report.status, report.output) == ("succeeded", output)
    assert report.commits > 5
