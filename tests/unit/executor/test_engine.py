"""The engine wires topics: each method has one home, and a few have a shortcut."""

from __future__ import annotations

import inspect

from executor.embed import open_engine
from executor.engine import Engine, Shortcut

SHORTCUTS = {
    "submit": "runs.submit",
    "run": "runs.run",
    "wait_finished": "runs.wait_finished",
    "cancel": "runs.cancel",
    "follow": "events.follow",
    "stream": "events.stream",
    "answer": "waits.answer",
    "signal": "signals.send",
}


async def test_shortcuts_lead_to_their_topics() -> None:
    assert {name for name, value in vars(Engine).items() if isinstance(value, Shortcut)} == set(SHORTCUTS)
    async with open_engine() as engine:
        for name, address in SHORTCUTS.items():
            topic, method = address.split(".")
            assert getattr(engine, name) == getattr(getattr(engine, topic), method)


def test_the_engine_opens_and_closes_and_does_nothing_else() -> None:
    own = {name for name, value in vars(Engine).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert own == {"stop_working", "close", "healthy", "ready"}
