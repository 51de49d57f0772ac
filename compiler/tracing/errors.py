"""What a workflow function cannot do, and the line of the user's file that did it."""

from __future__ import annotations

import inspect
from pathlib import PurePath
from types import FrameType

_HERE = str(PurePath(__file__).parent)


class TraceError(Exception):
    """A workflow function cannot become a document. The text is `flow.py, line 12: what is wrong. What to write.`

    file, line   the statement of the user that it is about; "" and 0 when there is none
    message      without the place
    """

    def __init__(self, message: str, place: tuple[str, int] | None = None) -> None:
        self.file, self.line = place or user_place()
        self.message = message
        where = f"{PurePath(self.file).name}, line {self.line}: " if self.line else ""
        super().__init__(where + message)


def user_place() -> tuple[str, int]:
    """File and line of the innermost frame that is neither of this package nor of the standard library between."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_HERE) and PurePath(file).name not in ("contextlib.py", "inspect.py"):
            return file, frame.f_lineno
        frame = frame.f_back
    return "", 0
