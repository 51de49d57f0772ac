"""The libraries of the sandbox's guests, which the extra `js` installs. Without them only simple expressions have a
result."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

from executor.errors import SandboxError
from executor.kernel.process.extras import install

LIBRARIES: Final = ("wasmtime", "quickjs_rs")
WHAT: Final = "JavaScript and Python in documents need libraries that are not installed here"


def missing() -> SandboxError | None:
    """Return the error of a program that cannot run here, or None."""
    return SandboxError(WHAT, code="sandbox_missing", hint=install("js")) if _is_missing() else None


@cache
def _is_missing() -> bool:
    return any(find_spec(name) is None for name in LIBRARIES)
