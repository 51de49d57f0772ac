"""The one boundary for everything a user can type: JavaScript in QuickJS, and Python in CPython, compiled to
WebAssembly, run by wasmtime. Values go in as JSON and come out as JSON; source text comes from the workflow alone and
never contains a value. There is no weaker fallback: when wasmtime does not run, only simple expressions have a result.

Read `sandbox` first. `simple` has the expressions that need no guest; `exchange` the requests to one, here or in
another process; `workers` the threads that own one; `guest` and `javascript/` the guest of JavaScript, `python` that of
Python; `engine` what a process has once. The bounds are explained in docs/reference/sandbox.md.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

KIB = 1024
MIB = 1024 * KIB
Reason = Literal["timeout", "memory", "stack", "stopped", "output", "refused"]
Language = Literal["javascript", "python"]


class Limits(Struct, frozen=True):
    """The bounds of user JavaScript. Sizes are bytes of UTF-8; memory is the guest's whole linear memory. `soft_ms`
    makes the engine stop between two byte codes; `hard_ms` stops it anywhere, also inside a regular expression or a
    built-in that loops. One list of expressions shares one budget. Code has soft = its timeout."""

    expression_source: int = 8 * KIB
    expression_soft_ms: int = 100
    expression_hard_ms: int = 300
    expression_memory: int = 32 * MIB
    code_source: int = 64 * KIB
    code_max_ms: int = 60_000
    code_grace_ms: int = 200
    code_memory: int = 80 * MIB
    python_memory: int = 128 * MIB
    console: int = 64 * KIB
    output: int = 1 * MIB
    depth: int = 64


class GuestStopped(Exception):
    """The call did not finish. `stopped`: by the caller; `output`: the answer is too long; `refused`: it called a
    function of the host that does not exist."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
