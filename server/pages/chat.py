"""The page of a public chat: its messages, and the box for the next one. Works without JavaScript, by loading the page
again; with it (`static/chat.js`) the answer appears while it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from executor.errors import WeftError
from executor.kernel.values.run_input import MESSAGE_MAX
from executor.service.topics.chat_tools import ChatTool, ToolState
from executor.service.topics.chats import ChatQuestion, ChatTurn, ChatView
from server.pages import html as instead
from server.pages.forms import file_inputs, form_fields
from server.pages.html import MARK, Html, as_words, el, markup, moment, page, value_view
from server.ui import Extras

WORDS = {
    "working": "The answer is being written.",
    "waiting": "A person has to agree before the answer continues.",
    "failed": "There is no answer to this message. Send it again, or try later.",
    "stopped": "This answer was stopped.",
}
_ERRORS = {
    "chat_busy": "Wait for the answer before you send the next message.",
    "chat_changed": "This conversation has other messages now. Read them, then send yours again.",
}
_TOOL: dict[ToolState, str] = {"working": ", under way", "done": ", done", "failed": ", failed"}
_OVER = {"expired": "Not answered in time", "cancelled": "No longer asked"}
_GAP_MS = 3_600_000  # after so long without a message the time is shown

_HEAD = """<header class="talkbar"><div><span class="who" aria-hidden="true">{}</span><div><h1>{}</h1>{}</div>
{}{}</div></header>"""
_FORM = """<form method="post" id="chat">
<input type="hidden" name="n" id="n" value="{}"><label for="message" class="unseen">Message</label>
<textarea name="message" id="message" rows="1" required maxlength="{}" placeholder="{}"
aria-describedby="hint">{}</textarea>
<button type="submit" class="primary" id="send"><svg class="up" viewBox="0 0 16 16" aria-hidden="true"><path
d="M8 13V3M3.5 7.5 8 3l4.5 4.5"/></svg><span>Send</span></button>
<button type="button" class="primary" id="stop" hidden><svg viewBox="0 0 16 16" aria-hidden="true"><path
d="M4.5 4.5h7v7h-7z"/></svg><span>Stop</span></button></form>
<p id="hint" class="quiet scripted" hidden>Enter sends, Shift and Enter begins a new line.</p>"""


def show(
    chat: ChatView,
    turns: Sequence[ChatTurn],
    *,
    here: str,
    typed: str = "",
    error: WeftError | None = None,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
    extras: Extras | None = None,
    read_only: bool = False,
) -> Response:
    """The conversation, whose address is `here`. With `error` the message was not sent, and is kept. `wrong`: the
    messages about fields of a question, by question and field."""
    said = None
    if error is not None:
        said = _ERRORS.get(error.code) or (error.message if wrong is not None else None)
        said = said or f"Write a message of at most {MESSAGE_MAX:,} characters."
    is_open = bool(turns) and turns[-1].state in ("working", "waiting")
    following = turns[-1].n + 1 if turns else 1
    form = markup(_FORM, str(following), str(MESSAGE_MAX), chat.placeholder or "Write a message", typed)
    another = el("a", "New conversation", href=here.rpartition("/")[0], class_="once")
    text = el("p", chat.text, class_="quiet") if chat.text else None
    content = (
        markup(_HEAD, chat.title[:1].upper(), chat.title, text, None if read_only else another, MARK),
        el(
            "main",
            el("ol", *_log(turns, here, wrong or {}, read_only), id="log", class_="chat", aria_label="Messages"),
            el("p", said or "", id="problem", class_="notice err", role="alert", hidden=said is None),
            el("p", "", id="said", role="status", class_="unseen"),
            el("noscript", el("p", el("a", "Load the page again", href=here), " to see the answer."))
            if is_open
            else None,
        ),
        el("footer", instead.read_only() if read_only else form, class_="composer"),
    )
    status = 200 if error is None else 409 if error.code in _ERRORS else 422
    script = None if read_only else "/static/chat.js"
    return page(chat.title, *content, status=status, frame="talk", script=script, extras=extras)


def _log(turns: Sequence[ChatTurn], here: str, wrong: Mapping[str, Mapping[str, str]], read_only: bool) -> list[Html]:
    items: list[Html] = []
    before_ms = 0
    for turn in turns:
        if turn.at_ms - before_ms > _GAP_MS:
            items.append(el("li", moment(turn.at_ms), class_="time"))
        before_ms = turn.at_ms
        items.append(el("li", el("span", "You", class_="unseen"), el("p", turn.message, class_="text"), class_="asked"))
        items += [_tool(one) for one in turn.tools]
        items += [_question(turn, one, here, wrong.get(one.wait, {}), read_only) for one in turn.questions]
        items.append(_answer(turn))
    return items


def tool_words(tool: ChatTool) -> dict[str, str]:
    """Return the text of its line, and the words for its state, which only screen readers get when it is done."""
    text = as_words(tool.name) + (f", {tool.calls} times" if tool.calls > 1 else "")
    return {"text": text, "words": _TOOL[tool.state]}


def _tool(tool: ChatTool) -> Html:
    line = tool_words(tool)
    state = el("span", line["words"], class_="unseen" if tool.state == "done" else None)
    return el("li", line["text"], state, class_="tool", data_tool=tool.name, data_state=tool.state)


def _answer(turn: ChatTurn) -> Html:
    asked = turn.state == "waiting" and any(one.status == "pending" for one in turn.questions)
    words = turn.answer if turn.answer is not None else "" if asked else WORDS[turn.state]
    kind = "text" if turn.state == "answered" else "text err" if turn.state == "failed" else "text quiet"
    return el(
        "li",
        el("span", "Answer", class_="unseen"),
        el("p", words, class_=kind),
        class_="answer",
        data_n=turn.n,
        data_state=turn.state,
        data_asked=len(turn.questions),
        hidden=not words,
    )


def _question(turn: ChatTurn, one: ChatQuestion, here: str, errors: Mapping[str, str], read_only: bool) -> Html:
    """The question with its form; one line once it is over, or if this page cannot send its files."""
    if one.status != "pending" or read_only or file_inputs(one.schema):
        answer = as_words(one.action) if one.action else _OVER.get(one.status, "Answered")
        open_yet = one.status == "pending"
        return el("li", one.title, el("b", " Not answered yet" if open_yet else f" {answer}"), class_="folded")
    labels: list[str | None] = [*one.actions] or [None]
    buttons = [
        el(
            "div",
            el(
                "button",
                as_words(action) if action else "Send",
                type="submit",
                name="action" if action else None,
                value=action,
                class_="primary" if at == 0 else None,
            ),
            el("span", one.outcomes[action]) if action and action in one.outcomes else None,
        )
        for at, action in enumerate(labels)
    ]
    shown = None if one.show in (None, {}, [], "") else el("section", value_view(one.show), class_="shown")
    return el(
        "li",
        el("p", "Needs your answer", class_="eyebrow"),
        el("h2", one.title),
        el("p", one.text, class_="text") if one.text else None,
        shown,
        el(
            "form",
            el("input", type="hidden", name="wait", value=one.wait),
            form_fields(one.schema, None, errors),
            el("div", *buttons, class_="answers" if one.outcomes else "actions"),
            method="post",
            action=f"{here}/{turn.n}/answer",
        ),
        class_="question",
    )
