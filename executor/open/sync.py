"""`weft.open_sync`: an engine for programs without asyncio.

    with open_sync("runs.db", workflows=[order]) as engine:
        run = engine.run(order, {"number": "7"})
        print(run.status, run.output)

`sync.pyi` has the methods with their types: `python -m tests.support.sync_engine` makes it of those of `Engine`."""

from __future__ import annotations

from functools import wraps
from typing import Any

from executor.open.blocking import OF_THE_ENGINE, TOPICS, Blocking
from executor.open.embed import open_engine
from executor.open.engine import Engine


class SyncEngine:
    """The topics and shortcuts of `weft.Engine` as methods that block, and streams as ordinary iterators. All threads
    of the process may share it. Made by `weft.open_sync`."""

    def __init__(self, opened: Blocking[Engine]) -> None:
        self._opened = opened

    def __enter__(self) -> SyncEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop working. Runs that are open continue when the database is opened again."""
        self._opened.close()

    def __getattr__(self, name: str) -> Any:
        value = vars(self._opened.inside).get(name)
        if name in TOPICS:
            return Topic(self._opened, name, value)
        return _method(self._opened, "SyncEngine", name, value)

    def __dir__(self) -> list[str]:
        shortcuts = [name for name, value in vars(self._opened.inside).items() if self._opened.method(value)]
        return sorted([*super().__dir__(), *TOPICS, *shortcuts])


class Topic:
    def __init__(self, opened: Blocking[Engine], name: str, topic: Any) -> None:
        self._opened, self._name, self._topic = opened, name, topic

    def __getattr__(self, name: str) -> Any:
        return _method(self._opened, f"engine.{self._name}", name, getattr(self._topic, name, None))

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._topic) if name[0] != "_" and hasattr(self, name)]


def _method(opened: Blocking[Engine], owner: str, name: str, function: Any) -> Any:
    method = None if name.startswith("_") or name in OF_THE_ENGINE else opened.method(function)
    if method is None:
        raise AttributeError(f"{owner} has no {name!r}")
    return method


@wraps(open_engine)
def open_sync(*args: Any, **kwargs: Any) -> SyncEngine:
    return SyncEngine(Blocking(open_engine(*args, **kwargs)))
