"""The shapes that the script of a chat page reads."""

from __future__ import annotations

from msgspec import Struct

from executor.service.topics.chats import ChatTurn


class ChatTurns(Struct, frozen=True):
    """The last messages of a conversation, in their order."""

    turns: list[ChatTurn]


class ChatSent(Struct, frozen=True):
    """The number of the message."""

    n: int
