"""The operator's command for secrets: one process, a line of JSON for each question and each answer.

    -> {"id": 1, "names": ["API_KEY"]}
    <- {"id": 1, "secrets": {"API_KEY": {"value": "...", "hosts": ["api.example.com"], "places": ["header:X-Key"]}}}

A name without a value is left out. None of its output is logged or shown, stderr included. It is started with the first
question and again after it ended, answered late, or wrote something else.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from executor.blocks.runners.children import Child
from executor.errors import BlockError

ANSWER_S: Final = 10.0
LINE_BYTES_MAX: Final = 1024 * 1024
OWN: Final = "WEFT_"  # variables of weft, which the command does not get


class External(Struct, frozen=True):
    value: str
    hosts: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


class _Answer(Struct, frozen=True):
    id: int
    secrets: dict[str, External]


class SecretsCommand:
    """`argv`: the program and its arguments; no shell. Belongs to the event loop of its first question."""

    def __init__(self, argv: Sequence[str], answer_s: float = ANSWER_S) -> None:
        self._argv = tuple(argv)
        self._answer_s = answer_s
        self._child: Child | None = None
        self._asked = 0
        self._turn = asyncio.Lock()

    async def get(self, names: Collection[str]) -> dict[str, External]:
        """Return the names for which the command has a value. Raises BlockError(secrets_command_failed), retryable."""
        try:
            async with asyncio.timeout(self._answer_s):
                await self._turn.acquire()
        except TimeoutError:
            raise _failed("too many requests wait for it") from None
        try:
            try:
                async with asyncio.timeout(self._answer_s):
                    answer = await self._ask(sorted(names))
            except TimeoutError:
                await self._end()
                raise _failed(f"it did not answer within {self._answer_s:g} s") from None
            except (OSError, ValueError, EOFError, msgspec.MsgspecError) as error:
                await self._end()
                raise _failed(_reason(error)) from None  # the text of the error could have a value in it
            except asyncio.CancelledError:  # its answer would be taken for that of the next question
                await self._end()
                raise
        finally:
            self._turn.release()
        return {name: answer.secrets[name] for name in names if name in answer.secrets}

    async def close(self) -> None:
        await self._end()

    async def _ask(self, names: list[str]) -> _Answer:
        if self._child is None or not self._child.is_ready:
            env = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
            self._child = await Child.of(*self._argv, env=env, stderr=DEVNULL, line_bytes=LINE_BYTES_MAX)
        self._asked += 1
        await self._child.send(msgspec.json.encode({"id": self._asked, "names": names}))
        answer = msgspec.json.decode(await self._child.receive(), type=_Answer)
        if answer.id != self._asked:
            raise ValueError
        return answer

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill(at_once=True)
            await child.ended()


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError | ConnectionError):
        return "it ended"
    return "it cannot be started" if isinstance(error, OSError) else "its answer is not what was expected"


def _failed(reason: str) -> BlockError:
    hint = "WEFT_SECRETS_COMMAND is set by the operator of this server"
    return BlockError(f"the command for secrets failed: {reason}", code="secrets_command_failed", hint=hint)
