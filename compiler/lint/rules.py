"""The codes of the linter, each with its hint. docs/reference/determinism.md has an example of each."""

from __future__ import annotations

from typing import Final

from compiler.diagnostics import Diagnostic

HINTS: Final = {
    "durable_clock": "Use weft.now(), which is the same in each entry, and weft.sleep() for a pause.",
    "durable_random": "Use weft.random(), which is the same in each entry, or draw in a step.",
    "durable_uuid": "Use weft.uuid(), which is the same in each entry.",
    "durable_io": "Do it in a function with @weft.step: its result is recorded.",
    "durable_env": "Read it in a step, or pass it as an argument.",
    "durable_thread": "Do it in a step: a plain function with @weft.step runs in a thread.",
    "durable_set": "Iterate over sorted(…), or use a list or a dict, which keep their order.",
    "durable_id": "Use a key of the value itself, or weft.uuid().",
    "durable_global": "Keep it in a local variable: other runs and other processes have another value.",
    "durable_swallow": "Write `except Exception`, or `raise` at its end: the function leaves by an exception.",
    "durable_unawaited": "Put `await` in front, or pass it to weft.gather() or weft.first().",
    "durable_finally": "Do it after the `try` statement, or in a step: `finally` runs each time the function leaves.",
    "durable_closure": "Write it at the top of the module.",
}


class SourceFinding(Diagnostic, frozen=True, omit_defaults=True):
    """A finding about the code of a durable function: `pointer` is that of its block. It only warns."""

    file: str = ""
    line: int = 0
