"""The HTTP status of every error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import server.api  # noqa: F401 - all modules that may define an error
from executor import errors
from executor.errors import StoreError, WeftError
from executor.kernel.run.mismatch import CodeUnfit
from server.http import errors as http_errors
from server.http.errors import STATUS, TooManyStreams, TooManyStreamsOfRun, problem_of, status_of


def _classes(base: type[WeftError]) -> Iterator[type[WeftError]]:
    for one in base.__subclasses__():
        yield one
        yield from _classes(one)


PRODUCT = [one for one in _classes(WeftError) if one.__module__.partition(".")[0] in ("executor", "server")]


@pytest.mark.parametrize("error", PRODUCT, ids=lambda one: one.__name__)
def test_every_error_has_a_status(error: type[WeftError]) -> None:
    assert any(base in STATUS for base in error.__mro__), f"{error.__name__} is missing in STATUS"


def test_every_error_stands_in_one_of_two_files_and_the_tree_names_those_of_the_executor() -> None:
    of_calls = [one for one in PRODUCT if issubclass(one, CodeUnfit)]  # BlockErrors with the calls that differ
    others = [one for one in PRODUCT if one not in of_calls]
    assert {one.__module__ for one in others} == {errors.__name__, http_errors.__name__}
    tree = (errors.__doc__ or "").split()
    for error in others:
        assert not hasattr(error, "status")
        assert error.__name__ in tree or error.__module__ == http_errors.__name__


def test_a_class_inherits_the_status_of_its_base_unless_it_has_its_own() -> None:
    assert status_of(errors.DatabaseWriteFailed()) == status_of(StoreError()) == 503
    assert status_of(errors.DatabaseFull()) == 507
    assert (status_of(TooManyStreams()), status_of(TooManyStreamsOfRun())) == (503, 429)
    assert TooManyStreamsOfRun().code == TooManyStreams().code == "too_many_streams"


def test_an_unknown_error_is_an_internal_one_and_tells_nothing() -> None:
    class Own(WeftError):
        """The password is hunter2."""

    answer = problem_of(Own())
    assert answer.status_code == 500 and b"hunter2" not in bytes(answer.body)
