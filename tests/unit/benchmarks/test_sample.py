from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.floors import fan
from benchmarks.sample import Program, main, program, values_in
from benchmarks.sequence import Sampled


def test_a_program_is_a_function_of_a_module_with_its_arguments_as_text() -> None:
    one = program(fan, 200)
    assert one == Program("benchmarks.floors:fan", ("200",))
    assert one.command == [sys.executable, "-m", "benchmarks.sample", "benchmarks.floors:fan", "200"]


def test_values_are_on_the_last_line() -> None:
    assert values_in("a library says hello\n\n[1.5, 2]\n") == (1.5, 2.0)


def test_a_sample_prints_what_the_program_returned(capsys: pytest.CaptureFixture[str]) -> None:
    main("benchmarks.floors:fan", "3")
    [value] = values_in(capsys.readouterr().out)
    assert value > 0


def _programs() -> Iterator[Program]:
    for benchmarks in BENCHMARKS.values():
        for one in benchmarks:
            if isinstance(one, Sampled):
                yield one.ours
                yield from [one.floor] if one.floor else []
                yield from one.others.values()


@pytest.mark.parametrize("one", list(_programs()), ids=lambda one: " ".join([one.call, *one.arguments]))
def test_every_program_exists(one: Program) -> None:
    module, _, name = one.call.partition(":")
    assert callable(getattr(import_module(module), name))
