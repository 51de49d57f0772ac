"""Tracebacks of Python code of users, as text for the journal: the frames of their files, and no others.

The frames of weft, of Python and of libraries are left out: people look for the line of their own that failed.
"""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Any, Final

from executor.errors import BlockError

TRACEBACK_BYTES: Final = 8 * 1024  # in the journal
_TEXT_MAX: Final = 64 * 1024  # characters, before secrets are removed and it is cut to the size for the journal
_FRAMES_MAX: Final = 50  # the last ones of each exception
_HEAD_BYTES: Final = 2 * 1024  # the part of the beginning that is kept if the text is cut
_CUT: Final = "\n  ...\n"
_CAUSED: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_PACKAGES: Final = ("compiler", "executor", "server", "weft")
_INSTALLED: Final = ("site-packages", "dist-packages")

log = logging.getLogger("weft.functions")  # `weft dev` shows it


def traceback_of(error: BaseException, work: Any) -> str:
    """Format how `error` was raised in `work`, a function or a class. Returns "" if `work` is a part of weft, or if no
    frame is in a file of users. The text may hold secrets, and has at most 64 K characters."""
    place = _place_of(work)
    if place is not None and place.startswith(_own()):
        return ""
    known = error.traceback if isinstance(error, BlockError) else ""
    shown = TracebackException.from_exception(error, lookup_lines=False, compact=True)
    if known:  # it has its causes
        shown.__cause__, shown.__suppress_context__ = None, True
    found = False
    for one in _all_of(shown):
        frames = [frame for frame in one.stack if is_of_users(frame.filename, place)]
        one.stack = StackSummary.from_list(frames[-_FRAMES_MAX:])
        found = found or bool(frames)
    if not found:
        return known
    text = "".join(shown.format()).rstrip()[:_TEXT_MAX]
    return f"{known}\n{_CAUSED}{text}" if known else text


def shortened(text: str) -> str:
    """Cut the text to TRACEBACK_BYTES: the beginning and, because the last call comes last, more of the end."""
    data = text.encode(errors="replace")
    if len(data) <= TRACEBACK_BYTES:
        return text
    head = data[:_HEAD_BYTES].rpartition(b"\n")[0] or data[:_HEAD_BYTES]
    tail = data[len(head) + len(_CUT) - TRACEBACK_BYTES :]
    tail = tail.partition(b"\n")[2] or tail
    return head.decode(errors="ignore") + _CUT + tail.decode(errors="ignore")


def log_raised(what: str, about: str, error: BaseException) -> None:
    """Log all frames, for the terminal of `weft dev`; for a function in another process, the text that was made
    there."""
    if not log.isEnabledFor(logging.INFO):
        return
    if isinstance(error, BlockError) and error.traceback and error.__cause__ is None:
        log.info("%s raised, %s\n%s", what, about, error.traceback)
    else:
        log.info("%s raised, %s", what, about, exc_info=error)


def _all_of(first: TracebackException) -> Iterator[TracebackException]:
    todo: list[TracebackException | None] = [first]
    while todo:
        if (one := todo.pop()) is not None:
            yield one
            todo += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]


def is_of_users(file: str, place: str | None = None) -> bool:
    """Return True if a file belongs to the user. `place`: the folder of the package, or the file, of the function,
    which may be installed."""
    if file.startswith(("<frozen", *_own())):
        return False
    if place is not None and file.startswith(place):
        return True
    return not (any(name in Path(file).parts for name in _INSTALLED) or file.startswith(_library()))


def _place_of(work: Callable[..., Any]) -> str | None:
    work = getattr(work, "func", work)  # a functools.partial
    name = getattr(work, "__module__", None) or type(work).__module__
    module = sys.modules.get(name.partition(".")[0])
    folders = list(getattr(module, "__path__", ()))
    if folders:
        return str(folders[0]) + os.sep
    return getattr(module, "__file__", None)


@cache
def _own() -> tuple[str, ...]:
    here = Path(__file__).parents[3]
    return tuple(f"{here / name}{os.sep}" for name in _PACKAGES)


@cache
def _library() -> tuple[str, ...]:
    return tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
