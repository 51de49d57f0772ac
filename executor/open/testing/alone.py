"""One block by itself, in a real run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from executor.kernel.handler.base import Block
from executor.kernel.journal.codec import data_of
from executor.open.testing.engines import engine
from executor.open.testing.play import Answers, finish

BLOCK = "block"  # its id in the document


class Ran(Struct, frozen=True):
    """The result of a block. `error`: code, message and traceback of the last attempt, or None if it succeeded.
    `route`: the exit. `log`: its lines; `text`: the live text."""

    status: str
    output: Any
    error: dict[str, Any] | None
    route: str | None
    attempts: int
    log: tuple[str, ...]
    text: str


async def run_block(
    block: Block | str,
    params: Mapping[str, Any] | None = None,
    *,
    input: Any = None,
    answers: Answers | Any = None,
    policy: Mapping[str, Any] | None = None,
    blocks: Iterable[Block] = (),
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    allow_private: Iterable[str] = (),
) -> Ran:
    """Run a block type (or the installed one of this name) in a workflow that has nothing else. `params` are those of a
    document: texts may have references, such as `<start.item>` to `input`. `answers`: the answer to its wait.

    Raises BadRequest if the params do not fit; its message lists the problems."""
    name = block if isinstance(block, str) else block.spec.type
    document = {
        "format": "weft/1",
        "name": "alone",
        "blocks": {
            "start": {"type": "start"},
            BLOCK: {"type": name, "params": dict(params or {}), "policy": dict(policy or {})},
        },
        "edges": [{"source": "start", "target": BLOCK}],
    }
    types = [*blocks, *([] if isinstance(block, str) else [block])]
    async with engine(blocks=types, env=env, secrets=secrets, allow_private=allow_private) as opened:
        submitted = await opened.submit(document, input=input)
        view = await finish(opened, submitted.run, None if answers is None else {BLOCK: answers})
        node = next(node for node in view.nodes if node.key == BLOCK)
        log: list[str] = []
        text = ""
        for record in await opened.store.read_events(submitted.run):
            if record.type == "node.log" and record.node == BLOCK:
                data = data_of(record)
                if data.get("stream", "log") == "log":
                    log += data["message"].split("\n")
                else:
                    text += data["message"]
        return Ran(node.status, node.output, node.error, node.route, node.attempt, tuple(log), text)
