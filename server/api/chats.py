"""Public chat pages. The token in the address is the credential, and the conversation's id after it selects the
conversation: the id is random, and its stream shows that conversation alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from executor.errors import AnswerInvalid, Conflict, InputInvalid, NotFound, WeftError
from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import Record
from executor.service.topics.chat_tools import ToolCalls
from executor.service.topics.chats import PERSON, ChatTurn, ChatView, new_conversation, streamed
from server.http.errors import CrossSite, UnsupportedMedia
from server.http.request import decode_form, read_bytes
from server.http.response import Json
from server.http.security import is_cross_site
from server.http.sse import EventStream
from server.http.table import Call, Routes, RouteSpec
from server.pages import chat as pages
from server.pages.forms import placed_errors, read_form
from server.pages.html import instead
from server.ui import Extras


class ChatFrames:
    """Encodes frames for `EventStream`. `shown` is the set of agents whose text and tools are sent."""

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._waits: set[tuple[str | None, str, int]] = set()
        self._calls = ToolCalls(shown)

    def records(self, records: list[Record]) -> Iterator[bytes]:
        for record in records:
            place = (record.node, record.path, record.attempt)
            if record.type == "node.started" and record.node in self._shown:
                yield _frame("begin", {})  # discards the text of an earlier attempt
            elif record.type == "wait.opened" and data_of(record).get("kind") in PERSON:
                self._waits.add(place)
                yield _frame("waiting", {})
            elif record.type == "wait.closed" and place in self._waits:
                self._waits.discard(place)
                yield _frame("working", {})
            elif record.type == "run.finished":
                yield _frame("end", {})
            elif (tool := self._calls.apply(record)) is not None:
                yield _frame("tool", {"name": tool.name, "state": tool.state, **pages.tool_words(tool)})

    def texts(self, texts: dict[str, str]) -> bytes:
        return b"".join(_frame("text", {"text": text}) for key, text in texts.items() if key in self._shown)


def _frame(event: str, data: dict[str, str]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(data))


class ChatTurns(Struct, frozen=True):
    """The last messages of a conversation, in their order."""

    turns: list[ChatTurn]


class ChatSent(Struct, frozen=True):
    """The number of the message."""

    n: int


BODY_BYTES_MAX = 64 * 1024
_ANY = "/chat/{name}/{token}"
_ONE = f"{_ANY}/{{conversation}}"
_HTML = ("text/html",)

route = Routes("triggers", RouteSpec)


@route.page("GET", _ANY, "Begin a conversation", media=_HTML)
async def begin(call: Call, name: str, token: str) -> Response:
    """Redirect to a new conversation. Nothing is stored before its first message."""
    try:
        await call.follow_link(call.engine.chats.find(name, token))
    except WeftError as error:
        return instead(error, "chat")
    return RedirectResponse(f"{call.request.url.path}/{new_conversation()}", 303)


@route.page("GET", _ONE, "A conversation", media=_HTML)
async def show(call: Call, name: str, token: str, conversation: str) -> Response:
    chats = call.engine.chats
    try:
        chat = await call.follow_link(chats.find(name, token))
        turns = await chats.turns(name, token, conversation)
    except WeftError as error:
        return instead(error, "chat")
    return (
        Json(ChatTurns(turns)) if call.accepts("application/json") else _page(call, chat, turns, call.request.url.path)
    )


@route.page("POST", _ONE, "Send a message", body_bytes=BODY_BYTES_MAX, media=_HTML)
async def send(call: Call, name: str, token: str, conversation: str) -> Response:
    """A form post leads back to the page; a script gets JSON."""
    wants_json, chats = call.accepts("application/json"), call.engine.chats
    try:
        chat, typed = await _typed(call, name, token)
        message = typed.get("message", "").replace("\r\n", "\n").strip()
        n = _number(typed.get("n", "")) or 0
        try:
            await chats.send(name, token, conversation, n, message)
        except (Conflict, InputInvalid) as error:
            if wants_json:
                raise
            turns = await chats.turns(name, token, conversation)
            return _page(call, chat, turns, call.request.url.path, typed=message, error=error)
    except WeftError as error:
        if wants_json:
            raise
        return instead(error, "chat")
    return Json(ChatSent(n), 202) if wants_json else RedirectResponse(call.request.url.path, 303)


@route.page("GET", f"{_ONE}/{{n}}/events", "The answer while it is written", media=("text/event-stream",))
async def stream(call: Call, name: str, token: str, conversation: str, n: str) -> Response:
    """The text of one message, the names of the tools that its agent calls, and the open questions, until its run has
    ended. Nothing else of the run is sent to visitors."""
    if is_cross_site(call.request.headers):
        raise CrossSite()
    await call.follow_link(call.engine.chats.find(name, token))
    number = _number(n)
    if number is None:
        raise NotFound("there is no such message", code="chat_not_found")
    row, plan = await call.engine.chats.run_of(name, token, conversation, number)
    return EventStream(call.engine, call.streams, row, 0, {}, encode=ChatFrames(streamed(plan)), so_far=True)


@route.page("POST", f"{_ONE}/{{n}}/answer", "Answer a question", body_bytes=BODY_BYTES_MAX, media=_HTML)
async def answer(call: Call, name: str, token: str, conversation: str, n: str) -> Response:
    """Answer a question that the visitor of the chat may answer. A form post leads back to the page; a script gets
    JSON."""
    wants_json, chats = call.accepts("application/json"), call.engine.chats
    here, number = call.request.url.path.rsplit("/", 2)[0], _number(n) or 0
    try:
        chat, typed = await _typed(call, name, token)
        question = await chats.question(name, token, conversation, number, typed.get("wait", ""))
        fields, errors = read_form(question.schema, typed)
        try:
            if errors:
                raise AnswerInvalid("Check the marked fields.", code="fields_invalid", pointer="/fields")
            await chats.answer(name, token, conversation, number, question.wait, fields, typed.get("action") or None)
        except AnswerInvalid as error:
            if wants_json:
                raise
            at_field = errors or placed_errors(question.schema, error)[0]
            turns = await chats.turns(name, token, conversation)
            return _page(call, chat, turns, here, error=error, wrong={question.wait: at_field})
        except Conflict:  # it was answered, or is over: the page shows it
            if wants_json:
                raise
    except WeftError as error:
        if wants_json:
            raise
        return instead(error, "chat")
    return Json(ChatSent(number), 202) if wants_json else RedirectResponse(here, 303)


@route.page("POST", f"{_ONE}/{{n}}/stop", "Stop an answer", body_bytes=BODY_BYTES_MAX, media=_HTML)
async def stop(call: Call, name: str, token: str, conversation: str, n: str) -> Response:
    """Cancel the run of a message. Its cleanup runs as for any cancelled run."""
    await _typed(call, name, token)
    number = _number(n) or 0
    await call.engine.chats.stop(name, token, conversation, number)
    return Json(ChatSent(number), 202)


async def _typed(call: Call, name: str, token: str) -> tuple[ChatView, dict[str, str]]:
    """The chat, and the fields of a form post to it, which counts against its rates."""
    if call.media_type != "application/x-www-form-urlencoded":
        raise UnsupportedMedia("This address accepts only the form of its page.", hint="Programs use a webhook.")
    chat = await call.follow_link(call.engine.chats.find(name, token))
    call.rates.link_answered(f"{chat.id}\0{call.address}")
    call.rates.hook_proved(chat.id, "token", call.address)
    return chat, decode_form(await read_bytes(call.request, call.limits))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


def _page(call: Call, chat: ChatView, turns: Sequence[ChatTurn], here: str, **more: Any) -> Response:
    extras, read_only = Extras(fonts=call.extras.fonts), call.settings.read_only
    return pages.show(chat, turns, here=here, extras=extras, read_only=read_only, **more)
