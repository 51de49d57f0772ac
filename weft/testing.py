"""Helpers for tests of your workflows and blocks: real engines, a clock that is set by hand, scripted blocks and
answers of services, and crashes at every commit. See docs/howto/test-your-workflows.md.

    async with testing.engine(blocks=[testing.scripted("email", None)]) as engine:
        run = (await engine.submit(document)).run
        view = await testing.finish(engine, run, {"ask": "approve"})
"""

from executor.blocks.connectors.stored import connector
from executor.open.testing.crashes import CrashReport, Problem, crash_everywhere
from executor.open.testing.engines import ManualClock, engine, settled
from executor.open.testing.outside import Effect, Outside
from executor.open.testing.play import CANCEL, Ran, Stuck, finish, run_block
from executor.open.testing.recorded import check_recorded
from executor.open.testing.replay import replay, replays
from executor.open.testing.scripted import ScriptedBlock, failure, scripted
from executor.open.testing.scripted_http import HttpAnswer, HttpRequest, ScriptedHttp
from executor.service.replay.checking import Checked
from server.scripted_model import ScriptedModel

__all__ = [
    "CANCEL",
    "Checked",
    "CrashReport",
    "Effect",
    "HttpAnswer",
    "HttpRequest",
    "ManualClock",
    "Outside",
    "Problem",
    "Ran",
    "ScriptedBlock",
    "ScriptedHttp",
    "ScriptedModel",
    "Stuck",
    "check_recorded",
    "connector",
    "crash_everywhere",
    "engine",
    "failure",
    "finish",
    "replay",
    "replays",
    "run_block",
    "scripted",
    "settled",
]
