"""The events of a run as programs show them while it runs: text, calls of tools, and waits. The engine and the clients
share this file, and weft-client has it, so it imports nothing of weft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

DELTA: Final = "node.delta"
LISTING: Final = "tools of "  # the name of a step that lists the tools of a server begins so
_UNSEEN: Final = ("child", "timer")  # waits that end by themselves


class TextDelta(Struct, frozen=True, tag="text"):
    """A piece of text that a model has just written. It is in no journal, and missing for readers that came later."""

    run: str
    key: str
    text: str


class ToolStarted(Struct, frozen=True, tag="tool_started"):
    """An agent calls a tool, as step `n` of the node. `arguments`: None if the beginning of the talk was not read."""

    run: str
    seq: int
    key: str
    n: int
    tool: str
    arguments: Any = None


class ToolFinished(Struct, frozen=True, tag="tool_finished"):
    """The tool has returned `output`, or failed with `error`."""

    run: str
    seq: int
    key: str
    n: int
    tool: str
    output: Any = None
    error: str | None = None


class WaitOpened(Struct, frozen=True, tag="wait"):
    """The run waits for an answer, a signal or a callback. `wait` is its id, for `engine.answer(run=run, node=wait)`;
    the list of waits has it with its link. `show`: what a person sees beside the title, such as the arguments of a
    call; of much its beginning, as text."""

    run: str
    seq: int
    key: str
    wait: str
    kind: str
    title: str = ""
    show: Any = None


class WaitClosed(Struct, frozen=True, tag="wait_closed"):
    """The wait is over: `answered`, `expired`, `cancelled`, …"""

    run: str
    seq: int
    key: str
    wait: str
    outcome: str = ""


class RunFinished(Struct, frozen=True, tag="finished"):
    run: str
    seq: int
    status: str
    output: Any = None
    error: Mapping[str, Any] | None = None


Live = TextDelta | ToolStarted | ToolFinished | WaitOpened | WaitClosed | RunFinished


class JournalEvent(Protocol):
    @property
    def run(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def key(self) -> str | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def data(self) -> dict[str, Any]: ...


class Reading:
    """Reads the events of one run, in their order."""

    def __init__(self) -> None:
        self._models: set[tuple[str, int]] = set()  # steps under way
        self._tools: dict[tuple[str, int], str] = {}
        self._waits: set[str] = set()  # that are open
        self._asked: dict[str, list[tuple[str, Any]]] = {}  # by node: what its models want called, not begun yet

    def take(self, event: JournalEvent) -> Iterator[Live]:
        """Yield what the event shows."""
        key, data = event.key or "", event.data
        match event.type:
            case "node.delta":
                yield TextDelta(event.run, key, data["text"])
            case "step.started":
                yield from self._started(event, key, data)
            case "step.finished":
                step = (key, data["n"])
                if step in self._models:
                    self._models.discard(step)
                    self._ask(key, data.get("output"))
                elif (tool := self._tools.pop(step, None)) is not None:
                    error = data.get("error") or {}
                    output, message = data.get("output"), error.get("message")
                    yield ToolFinished(event.run, event.seq, key, step[1], tool, output, message)
            case "wait.opened" if data["kind"] not in _UNSEEN:
                self._waits.add(wait := data["wait"])
                title, show = data.get("title") or "", data.get("show")
                yield WaitOpened(event.run, event.seq, key, wait, data["kind"], title, show)
            case "wait.closed" if (wait := f"{key}!{event.attempt}") in self._waits:
                self._waits.discard(wait)
                yield WaitClosed(event.run, event.seq, key, wait, data.get("outcome") or "")
            case "run.finished":
                yield RunFinished(event.run, event.seq, data["status"], data.get("output"), data.get("error"))

    def _started(self, event: JournalEvent, key: str, data: Mapping[str, Any]) -> Iterator[Live]:
        step, kind, name = (key, data["n"]), data["kind"], data["name"]
        if kind == "model":
            self._models.add(step)
            return
        asked = self._asked.get(key, [])
        at = next((at for at, (tool, _) in enumerate(asked) if tool == name), None)
        if step in self._tools or kind not in ("tool", "wait"):  # it is tried again, or is no call of a tool
            return
        if at is None and (kind == "wait" or name.startswith(LISTING)):
            return
        arguments = None if at is None else asked.pop(at)[1]
        self._tools[step] = name
        yield ToolStarted(event.run, event.seq, key, step[1], name, data.get("shown", arguments))

    def _ask(self, key: str, reply: Any) -> None:
        calls = (reply or {}).get("calls") or ()
        again = {call["name"] for call in calls}
        left = [one for one in self._asked.get(key, []) if one[0] not in again]  # those were refused
        self._asked[key] = left + [(call["name"], call.get("arguments")) for call in calls]
