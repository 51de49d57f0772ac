"""wasmtime, for all files of the sandbox that use it. It is of the extra `js`: this module is imported with the first
program that needs a guest, and raises SandboxError(sandbox_missing) where it cannot be."""

from __future__ import annotations

from executor.blocks.sandbox.missing import missing

if (reason := missing()) is not None:
    raise reason

import wasmtime as wasmtime
