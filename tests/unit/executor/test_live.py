"""The events that a program shows while a run is under way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from executor.blocks.llm.base import Conversation, OnDelta, Reply
from executor.live import Live, RunFinished, TextDelta, ToolFinished, ToolStarted, WaitClosed, WaitOpened
from executor.open.engine import Engine
from executor.open.testing.engines import engine
from server.scripted_model import ScriptedModel

NODE = "a"


@weft.step(effect="read")
async def search(query: str) -> str:
    if query == "nothing":
        raise LookupError("not found")
    return query.upper()


@weft.step(approve=True)
async def publish(text: str) -> str:
    return text


@weft.workflow
async def lookup(query: str) -> Any:
    return await search(query)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


MODEL = (
    {
        "when": {"tool": ""},
        "text": "I look.",
        "calls": [call("search", query="lanes"), call("search", query="nothing")],
    },
    {"when": {"round": 1}, "calls": [call("lookup", query="more"), call("publish", text="Lanes")]},
    {"text": "Done at last."},
)
FLOW = weft.draw.Workflow("talk", weft.draw.Agent("dev:m", "Go", tools=[search, publish, lookup], id=NODE))


async def followed(opened: Engine, run: str) -> list[Live]:
    shown: list[Live] = []
    async for event in opened.follow(run, text=True):
        shown.append(event)
        if isinstance(event, WaitOpened):
            [wait] = [one for one in await opened.waits.list(run=run) if one.id == event.wait]
            assert wait.link is not None
            await opened.answer(wait.link, {"text": "Edited"}, action="approve")
    return shown


def plain(shown: list[Live]) -> list[Any]:
    """Without what differs from run to run; text as one."""
    found: list[Any] = []
    for event in shown:
        match event:
            case TextDelta(text=text):
                if found and isinstance(found[-1], str):
                    found[-1] += text
                else:
                    found.append(text)
            case ToolStarted():
                found.append(("start", event.n, event.tool, event.arguments))
            case ToolFinished():
                found.append(("end", event.n, event.tool, event.output or event.error))
            case WaitClosed():
                found.append((event.outcome, event.wait))
            case WaitOpened():
                found.append((event.kind, event.title, event.show))
            case RunFinished():
                found.append((event.status, event.output["content"]))
    return found


EXPECTED = [
    "I look.",
    ("start", 2, "search", {"query": "lanes"}),
    ("start", 3, "search", {"query": "nothing"}),
    ("end", 2, "search", "LANES"),
    ("end", 3, "search", f"{search.name}: LookupError: not found"),
    ("approval", "Call publish?", {"tool": "publish", "arguments": {"text": "Lanes"}}),
    ("answered", "a!1"),
    ("start", 6, "publish", {"text": "Lanes"}),
    ("end", 6, "publish", "Edited"),
    ("start", 7, "lookup", {"query": "more"}),
    ("end", 7, "lookup", "MORE"),
    "\n\nDone at last.",
    ("succeeded", "Done at last."),
]


class Held(ScriptedModel):
    """Answers once its text is read: text is of the moment."""

    is_read = asyncio.Event()

    async def reply(self, name: str, conversation: Conversation, on_delta: OnDelta | None) -> Reply:
        await self.is_read.wait()
        return await super().reply(name, conversation, on_delta)


async def test_text_tools_and_waits_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Held(*MODEL)
    async with engine(workflows=[FLOW], models={"dev": model}) as opened:
        deltas = opened.events.deltas

        def read(*args: Any, **more: Any) -> Any:
            made = deltas(*args, **more)
            model.is_read.set()
            return made

        monkeypatch.setattr(opened.events, "deltas", read)
        run = (await opened.submit(FLOW)).run
        shown = plain(await followed(opened, run))
        assert shown == EXPECTED
        again = plain([event async for event in opened.follow(run, text=True)])
    assert again == [event for event in EXPECTED if not isinstance(event, str)], "text is of the moment"
