"""Public chat pages: a conversation is a list of runs, one for each message; `engine.chats`.

A page is declared by a `chat_trigger` block and is a row of the webhooks, as a public form is. The token in its address
permits to begin a conversation; the random id of a conversation permits to read it. Message n has an idempotency key of
its own: sent again it starts no second run, and earlier messages are found by the keys."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from compiler.plan import Plan
from executor.errors import Conflict, NotFound
from executor.kernel.core import facts as f
from executor.kernel.journal.reader import Records, load_plan
from executor.kernel.run.answers import VISITOR
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id, request_hash
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.waits import WaitRow, WaitStatus
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.kernel.values.payload import render
from executor.kernel.values.run_input import MESSAGE_MAX
from executor.service.parts import Parts, Topic
from executor.service.topics.chat_tools import STEPS, ChatTool, ToolCalls
from executor.service.topics.runs import Runs
from executor.service.topics.waits import Waits
from executor.service.triggers.declared import CHAT, StartOf
from executor.service.triggers.webhooks import Webhooks
from executor.service.views import RunView

CONVERSATION: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
MADE_HERE: Final = re.compile(r"[A-Za-z0-9_-]{24}")  # by `new_conversation`
SHOWN: Final = 50  # messages of a page, the last ones
TURN_MAX: Final = 999_999
ANSWERS_KEPT: Final = 1_000  # in memory
PERSON: Final = frozenset({"approval", "form", "attention"})  # kinds of waits that a person ends
QUESTIONS_MAX: Final = 20  # of one message
State = Literal["working", "waiting", "answered", "failed", "stopped"]


class ChatView(Struct, frozen=True):
    """A chat page as visitors see it."""

    id: str
    title: str
    text: str | None
    placeholder: str | None


class ChatQuestion(Struct, frozen=True):
    """A question that the visitor may answer (`by` has "chat"). `action`: the button that was pressed."""

    wait: str
    title: str
    text: str | None
    show: Any
    schema: Any
    actions: tuple[str, ...]
    outcomes: dict[str, str]
    status: WaitStatus
    action: str | None = None


class ChatTurn(Struct, frozen=True):
    """A message and its answer, with the tools called and the questions asked meanwhile. `answer` is None if there is
    none yet, or if it failed; `at_ms` is when the message was sent."""

    n: int
    message: str
    state: State
    answer: str | None = None
    questions: tuple[ChatQuestion, ...] = ()
    at_ms: int = 0
    tools: tuple[ChatTool, ...] = ()


class Chats(Topic):
    def __init__(self, parts: Parts, webhooks: Webhooks, runs: Runs, waits: Waits) -> None:
        super().__init__(parts)
        self._webhooks = webhooks
        self._runs = runs
        self._waits = waits
        # For runs that succeeded, which do not change.
        self._answers: OrderedDict[str, tuple[str, tuple[ChatTool, ...]]] = OrderedDict()

    async def find(self, name: str, token: str) -> ChatView:
        row = await self._row(name, token)
        start = await self._webhooks.ready(row)
        title = start.params.get("title") or start.node.name or start.workflow
        return ChatView(row.id, title, start.params.get("text") or None, start.params.get("placeholder") or None)

    async def turns(self, name: str, token: str, conversation: str) -> list[ChatTurn]:
        rows = await self._last_runs(await self._row(name, token), conversation, SHOWN)
        turns: list[ChatTurn] = []
        for row in reversed(rows):
            try:
                turns.append(await self._turn(row))
            except NotFound:  # deleted meanwhile
                continue
        return turns

    async def send(self, name: str, token: str, conversation: str, n: int, message: str) -> bool:
        """Start a run with message `n`. Returns False if it was sent before. Raises like `Webhooks.ready` and
        `check_input`, QueueFull, and Conflict: the answer before is not there (chat_busy), or another message has this
        number (chat_changed)."""
        row = await self._row(name, token)
        with self._webhooks.noted(row.id):
            start = await self._webhooks.ready(row)
            last = await self._last_runs(row, conversation, 1)
            following = number_of(last[0]) + 1 if last else 1
            if n == following and last and last[0].status not in TERMINAL:
                raise Conflict("the answer before is not there yet", code="chat_busy", hint="wait for it")
            if n > following or n > TURN_MAX:
                raise Conflict("other messages of this conversation are missing", code="chat_changed", hint="reload")
            return await self._start(row, start, conversation, _name_in_runs(row, conversation, last), n, message)

    async def run_of(self, name: str, token: str, conversation: str, n: int) -> tuple[RunRow, Plan]:
        row = await self._row(name, token)
        key = _key(row, conversation, n)
        found = await self._store.runs_by_key(row.workflow, key, key, 1)
        if not found:
            raise NotFound("there is no such message", code="chat_not_found")
        return found[0], await load_plan(self._store, found[0].plan_hash)

    async def answer(
        self, name: str, token: str, conversation: str, n: int, wait: str, fields: dict[str, Any], action: str | None
    ) -> None:
        """Answer a question of message `n` as its visitor. Raises like `Waits.answer`, and NotFound for a question that
        is not the visitor's."""
        await self.question(name, token, conversation, n, wait)
        row, _ = await self.run_of(name, token, conversation, n)
        await self._waits.answer_wait(row.id, wait, fields, action, None, VISITOR)

    async def question(self, name: str, token: str, conversation: str, n: int, wait: str) -> ChatQuestion:
        row, _ = await self.run_of(name, token, conversation, n)
        for question in await self._questions(row):
            if question.wait == wait:
                return question
        raise NotFound("there is no such question", code="wait_not_found")

    async def stop(self, name: str, token: str, conversation: str, n: int) -> None:
        """Cancel the run of message `n`, if it has not ended."""
        row, _ = await self.run_of(name, token, conversation, n)
        await self._runs.cancel(row.id, "stopped in the chat")

    async def _questions(self, row: RunRow) -> tuple[ChatQuestion, ...]:
        found = await self._store.list_waits(None, row.id, QUESTIONS_MAX)
        asked = [(wait, orjson.loads(wait.request)) for wait in found if wait.kind in PERSON]
        return tuple(_question(wait, request) for wait, request in asked if "chat" in (request.get("by") or ()))

    async def _start(self, row: WebhookRow, start: StartOf, conversation: str, name: str, n: int, message: str) -> bool:
        input = {"message": message, "conversation": name, "turn": n}
        checked = await check_input(start.plan, input, self._parts.services.sandbox.matches)
        now_ms = self._clock.now_ms()
        new = new_run(
            start.plan,
            f.StartRequested(now_ms, new_run_id(now_ms)),
            Origin(start.workflow, start.version),
            checked,
            idempotency_key=_key(row, conversation, n),
            request_hash=request_hash("chat", checked, row.trigger, None),
        )
        try:
            _, created = await self._runs.create(new, start.plan)
        except Conflict as error:
            if error.code != "idempotency_key_reused":
                raise
            message = "another message of this conversation was sent at the same time"
            raise Conflict(message, code="chat_changed", hint="reload the page and send yours again") from None
        return created

    async def _last_runs(self, row: WebhookRow, conversation: str, limit: int) -> list[RunRow]:
        first, last = _key(row, conversation, 0), _key(row, conversation, TURN_MAX)
        return await self._store.runs_by_key(row.workflow, first, last, limit)

    async def _turn(self, row: RunRow) -> ChatTurn:
        input = orjson.loads(row.input)
        n, said = number_of(row), str(input.get("message", "")) if isinstance(input, dict) else ""
        state: State
        answer, tools = None, None
        if row.status not in TERMINAL:
            view = await self._runs.view(row.id) if row.status == "waiting" else None
            waits = (*view.waits, *view.child_waits) if view is not None else ()
            state = "waiting" if any(wait.kind in PERSON for wait in waits) else "working"
        elif row.status != "succeeded":
            state = "stopped" if row.status == "cancelled" else "failed"
        else:
            answer, tools = await self._answer(row)
            answer = answer or None
            state = "answered" if answer else "failed"
        if tools is None:
            tools = await self._tools(row)
        return ChatTurn(n, said, state, answer, await self._questions(row), row.created_at_ms, tools)

    async def _tools(self, row: RunRow) -> tuple[ChatTool, ...]:
        agents = streamed(await load_plan(self._store, row.plan_hash))
        calls = ToolCalls(agents, over=row.status in TERMINAL)
        if agents:
            async for record in Records(self._store, row.id, types=STEPS):
                calls.apply(record)
        return calls.tools()

    async def _answer(self, row: RunRow) -> tuple[str, tuple[ChatTool, ...]]:
        """Return the answer of a run and the tools it called, cached: a page that is loaded again does not read all
        journals again."""
        known = self._answers.get(row.id)
        if known is not None:
            self._answers.move_to_end(row.id)
            return known
        view = await self._runs.view(row.id)
        answer = answer_of(view, await load_plan(self._store, row.plan_hash))
        found = answer, await self._tools(row)
        if len(answer) <= MESSAGE_MAX:
            self._answers[row.id] = found
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        return found

    async def _row(self, name: str, token: str) -> WebhookRow:
        return await self._webhooks.page(CHAT + name, token, "there is no chat at this address", "chat_not_found")


def _name_in_runs(row: WebhookRow, conversation: str, last: Sequence[RunRow]) -> str:
    """Return the name of a conversation in its runs, which workflows may use as a key for memory: specific to this
    page, so that no visitor can choose the key of another one. Older conversations keep the id in their address."""
    said = orjson.loads(last[0].input) if last else None
    if isinstance(said, dict) and said.get("conversation") == conversation and MADE_HERE.fullmatch(conversation):
        return conversation
    digest = hashlib.sha256(f"{row.id}\0{conversation}".encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def new_conversation() -> str:
    """Return the last part of the address of a new conversation."""
    return secrets.token_urlsafe(18)


def _question(wait: WaitRow, request: dict[str, Any]) -> ChatQuestion:
    outcomes, response = request.get("outcomes"), orjson.loads(wait.response or b"null")
    return ChatQuestion(
        wait.id,
        str(request.get("title") or wait.node),
        request.get("text") if isinstance(request.get("text"), str) else None,
        request.get("show"),
        None if wait.schema is None else orjson.loads(wait.schema),
        tuple(request.get("actions") or ()),
        {action: str(text) for action, text in outcomes.items()} if isinstance(outcomes, dict) else {},
        wait.status,
        response.get("action") if isinstance(response, dict) else None,
    )


def number_of(row: RunRow) -> int:
    assert row.idempotency_key is not None
    return int(row.idempotency_key.rpartition(":")[2])


def answer_of(view: RunView, plan: Plan) -> str:
    """Return the body of the response; without one the last reply of the agent; without one the output of the run."""
    if view.response is not None:
        body = view.response.get("body")
    else:
        agents = {node.block for node in plan.nodes if node.type == "agent"}
        said = [node for node in view.nodes if node.block in agents and node.status == "succeeded"]
        last = max(said, key=lambda node: node.finished_at_ms or 0, default=None)
        body = view.output if last is None else (last.output or {}).get("content")
    return "" if body is None else render(body)


def streamed(plan: Plan) -> frozenset[str]:
    """Return the blocks whose text may be shown while it comes: agents that only responses follow. Other blocks may yet
    check or change the text, so it is not shown before."""
    nodes = plan.nodes
    root = range(len(plan.regions[0].nodes))  # its nodes come first
    ends = {at for at in root if not nodes[at].out or nodes[at].type == "response"}
    return frozenset(
        nodes[at].block
        for at in root
        if nodes[at].type == "agent" and all(edge.target in ends for edge in nodes[at].out)
    )


def _key(row: WebhookRow, conversation: str, n: int) -> str:
    """Raises NotFound: no conversation is called so."""
    if not CONVERSATION.fullmatch(conversation):
        raise NotFound("there is no such conversation", code="chat_not_found")
    return f"chat:{row.trigger}:{conversation}:{n:06d}"
