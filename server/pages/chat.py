"""The page of a public chat: its messages, and the box for the next one. Works without JavaScript, by loading the page
again; with it (`static/chat.js`) the answer appears while it is written."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from executor.errors import WeftError
from executor.kernel.values.run_input import MESSAGE_MAX
from executor.service.topics.chats import ChatTurn, ChatView
from server.pages import html as instead
from server.pages.html import Html, el, markup, page
from server.ui import Extras

WORDS = {
    "working": "The answer is being written.",
    "waiting": "A person has to agree before the answer continues.",
    "failed": "There is no answer to this message. Send it again, or try later.",
}
_ERRORS = {
    "chat_busy": "Wait for the answer before you send the next message.",
    "chat_changed": "This conversation has other messages now. Read them, then send yours again.",
}

_FORM = """<form method="post" id="chat">
<input type="hidden" name="n" id="n" value="{}"><label for="message">Message</label>
<textarea name="message" id="message" rows="2" required maxlength="{}" placeholder="{}"
aria-describedby="hint">{}</textarea>
<small id="hint" class="quiet scripted" hidden>Enter sends, Shift and Enter begins a new line.</small>
<div class="actions"><button type="submit" class="primary" id="send">Send</button></div></form>"""


def show(
    chat: ChatView,
    turns: Sequence[ChatTurn],
    *,
    another: str,
    typed: str = "",
    error: WeftError | None = None,
    extras: Extras | None = None,
    read_only: bool = False,
) -> Response:
    """The conversation. `another` is the address of a new one. With `error` the message was not sent, and is kept."""
    said = None
    if error is not None:
        said = _ERRORS.get(error.code, f"Write a message of at most {MESSAGE_MAX:,} characters.")
    is_open = bool(turns) and turns[-1].state in ("working", "waiting")
    following = turns[-1].n + 1 if turns else 1
    form = markup(_FORM, str(following), str(MESSAGE_MAX), chat.placeholder, typed)
    content = (
        el("h1", chat.title),
        el("p", chat.text, class_="text") if chat.text else None,
        el("ol", *[item for turn in turns for item in _items(turn)], id="log", class_="chat", aria_label="Messages"),
        el("p", said or "", id="problem", class_="notice err", role="alert", hidden=said is None),
        el("p", "", id="said", role="status", class_="unseen"),
        el("noscript", el("p", el("a", "Load the page again", href=""), " to see the answer.")) if is_open else None,
        instead.read_only() if read_only else form,
        None if read_only else el("p", el("a", "New conversation", href=another), class_="quiet once"),
    )
    status = 200 if error is None else 409 if error.code in _ERRORS else 422
    script = None if read_only else "/static/chat.js"
    return page(chat.title, *content, status=status, chrome=False, script=script, extras=extras)


def _items(turn: ChatTurn) -> list[Html]:
    asked = el("li", el("span", "You", class_="who"), el("p", turn.message, class_="text"), class_="asked")
    if turn.state == "answered":
        body = el("p", turn.answer, class_="text")
    else:
        kind = "text err" if turn.state == "failed" else "text quiet"
        body = el("p", WORDS[turn.state], class_=kind)
    return [
        asked,
        el("li", el("span", "Answer", class_="who"), body, class_="answer", data_n=turn.n, data_state=turn.state),
    ]
