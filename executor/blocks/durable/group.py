"""`weft.group`: names what a durable function calls inside, for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from executor.kernel.handler.durable import group as inside


@contextmanager
def group(name: str, /, **more: object) -> Iterator[None]:
    """Name what is called inside, also by tasks that begin there: `with weft.group("ship", part=3):`. Groups may be
    nested. The lane of a run shows them; nothing else follows from them."""
    around = inside.get()
    shown = " ".join((name, *(f"{key}={value}" for key, value in more.items())))
    token = inside.set(f"{around}/{shown}" if around else shown)
    try:
        yield
    finally:
        with suppress(ValueError):  # the function leaves: that is outside of its context
            inside.reset(token)
