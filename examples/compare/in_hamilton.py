"""What of the five workflows Hamilton can do: functions whose parameters name other functions. Results are cached on
disk, so a graph that is executed again continues. There is no retry, no wait for a person and no timer."""

import importlib
import json
import sys
from pathlib import Path

from hamilton import driver
from hamilton.execution.executors import SynchronousLocalTaskExecutor
from hamilton.htypes import Collect, Parallelizable

from examples.compare import outside


# chain: a retry is a loop of your own
def fetched() -> str:
    for left in (2, 1, 0):
        try:
            return outside.fetch()
        except ConnectionError:
            if not left:
                raise
    raise AssertionError


def parsed(fetched: str) -> list[str]:
    return outside.parse(fetched)


def chain(parsed: list[str]) -> int:
    return outside.store(parsed)


# fan
def word(words: list[str]) -> Parallelizable[str]:
    yield from words


def counted(word: str) -> int:
    return outside.count(word)


def fan(counted: Collect[int]) -> int:
    return outside.total(list(counted))


# branch: inside a function
def branch(amount: int) -> str:
    if amount > 100:
        return outside.by_invoice(amount)
    try:
        return outside.by_card(amount)
    except ValueError as error:
        return outside.apologise(str(error))


# --- run

INPUTS = {"fan": {"words": ["a", "bb", "ccc"]}, "branch": {"amount": 5}}


def main(name: str, folder: str, answer: str | None = None) -> None:
    if name in ("approval", "sleep"):
        return print("cannot")
    builder = driver.Builder().with_modules(importlib.import_module("examples.compare.in_hamilton"))
    builder = builder.with_cache(path=str(Path(folder, "cache")))
    if name == "fan":
        builder = builder.enable_dynamic_execution(allow_experimental_mode=True)
        builder = builder.with_remote_executor(SynchronousLocalTaskExecutor())
    made = builder.build()
    print(json.dumps(made.execute([name], inputs=INPUTS.get(name, {}))[name]))


if __name__ == "__main__":
    main(*sys.argv[1:])
