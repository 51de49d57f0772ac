"""One sample: `python -m benchmarks.sample module:function [argument ...]` calls it once and prints its values.

A program to be sampled is a function that takes texts, measures itself, and returns one or more values. It runs in a
fresh process each time, so that no sample finds caches that another one has filled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]


class Program(Struct, frozen=True):
    """`call` is `module:function`."""

    call: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable

    @property
    def command(self) -> list[str]:
        return [self.python, "-m", "benchmarks.sample", self.call, *self.arguments]

    def run(self, timeout_s: float | None = None) -> tuple[float, ...]:
        ended = subprocess.run(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout_s)
        return values_in(ended.stdout)


def program(function: Callable[..., Sequence[float]], *arguments: object) -> Program:
    return Program(f"{function.__module__}:{function.__qualname__}", tuple(str(value) for value in arguments))


def values_in(output: str) -> tuple[float, ...]:
    """The last line: libraries may print before it."""
    return tuple(float(value) for value in json.loads(output.strip().rpartition("\n")[2]))


def main(call: str, *arguments: str) -> None:
    module, _, name = call.partition(":")
    values = getattr(import_module(module), name)(*arguments)
    print("\n" + json.dumps([float(value) for value in values]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
