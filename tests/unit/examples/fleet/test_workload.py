"""The runs of the demo: their output is what it is checked against, and who counts as lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.fleet.workload import Workload, document, expected
from executor.open.embed import open_engine
from server.client import ApiError, ServerUnreachable


async def test_the_output_is_what_it_is_checked_against(tmp_path: Path) -> None:
    async with open_engine(tmp_path / "weft.db") as engine:
        for n in (0, 7):
            run = await engine.run(document(), {"n": n})
            assert (run.status, run.output) == ("succeeded", {"result": expected(n), "stdout": ""})


class Answers:
    """Of a server, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def get_run(self, run: str) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def looked_at(*answers: Any) -> Workload:
    """One run with the input 1, looked at until nothing is left to answer."""
    workload = Workload((), "token", 1.0)
    server: Any = Answers(*answers)
    workload._turn = iter([server] * 10)  # type: ignore[assignment]  # all turns are this server's
    workload._open["r"] = (1, 0.0)
    while server.answers:
        await workload._look_at("r")
    return workload


async def test_a_run_is_right_wrong_or_lost() -> None:
    right = await looked_at({"status": "running"}, {"status": "succeeded", "output": {"result": 9}})
    assert (right.counts.ended, right.counts.wrong, right.counts.lost, right.open) == (1, 0, 0, 0)
    for wrong in ({"status": "succeeded", "output": {"result": 8}}, {"status": "failed", "output": None}):
        found = await looked_at(wrong)
        assert (found.counts.ended, found.counts.wrong, found.counts.lost) == (1, 1, 0)
    lost = await looked_at(ApiError(404, {}))
    assert (lost.counts.ended, lost.counts.wrong, lost.counts.lost, lost.open) == (0, 0, 1, 0)


async def test_a_server_that_does_not_answer_says_nothing_about_a_run() -> None:
    found = await looked_at(
        ServerUnreachable("down"), ApiError(503, {}), {"status": "succeeded", "output": {"result": 9}}
    )
    assert (found.counts.ended, found.counts.wrong, found.counts.lost) == (1, 0, 0)
