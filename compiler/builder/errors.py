"""Errors of workflows in Python, found before there is a document, with the line of the user's file."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Final

_WEFT: Final = PurePath(__file__).parents[2]
_HERE: Final = tuple(
    str(_WEFT / folder) for folder in ("compiler/builder", "compiler/tracing", "executor/blocks/durable")
)
_STANDARD: Final = str(PurePath(inspect.__file__).parent)
# Errors of the present trace: user code may have caught one.
raised: ContextVar[list[DefinitionError] | None] = ContextVar("weft_trace_errors", default=None)


class BuildError(ValueError):
    """`message` begins with the place: the id of the block, the line of the source. `hint`: what to write."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint


class DefinitionError(Exception):
    """A workflow function cannot become a document. The text is `flow.py, line 12: what is wrong. What to write.`

    file, line   the statement of the user; "" and 0 without one
    message      without the place
    """

    def __init__(self, message: str, place: tuple[str, int] | None = None) -> None:
        self.file, self.line = place or user_place()
        self.message = message
        where = f"{PurePath(self.file).name}, line {self.line}: " if self.line else ""
        super().__init__(where + message)
        if (errors := raised.get()) is not None:
            errors.append(self)


def user_place() -> tuple[str, int]:
    """File and line of the innermost frame that is neither of these packages nor of the standard library."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        if is_of_user(frame.f_code):
            return frame.f_code.co_filename, frame.f_lineno
        # A method of FunctionWorkflow: it is about what the function returned; of Call: about what that records.
        if frame.f_code.co_name in ("_trace", "__await__") and hasattr(frame.f_locals.get("self"), "defined"):
            place: tuple[str, int] = frame.f_locals["self"].defined
            return place
        frame = frame.f_back
    return "", 0


def is_of_user(code: CodeType) -> bool:
    """Neither of these packages nor of the standard library?"""
    file = code.co_filename
    if file.startswith(("<frozen", *_HERE)):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file
