"""Bounds of the sandbox, and how a guest says that it reached one. Table with reasons: docs/reference/sandbox.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KIB = 1024
MIB = 1024 * KIB
Reason = Literal["timeout", "memory", "stack", "stopped", "output"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What user JavaScript may use. Sizes are bytes of UTF-8; memory is the guest's whole linear memory.

    `soft_ms` asks the engine to stop between two byte codes; `hard_ms` stops it anywhere, also inside a regular
    expression or a built-in that loops. One list of expressions shares one budget. Code has soft = its timeout.
    """

    expression_source: int = 8 * KIB
    expression_soft_ms: int = 100
    expression_hard_ms: int = 300
    expression_memory: int = 32 * MIB
    code_source: int = 64 * KIB
    code_max_ms: int = 60_000
    code_grace_ms: int = 200
    code_memory: int = 80 * MIB
    console: int = 64 * KIB
    output: int = 1 * MIB
    depth: int = 64


class GuestStopped(Exception):
    """The call did not come to its end. `stopped`: by the caller; `output`: the answer is too long."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
