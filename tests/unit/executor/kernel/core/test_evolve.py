"""The table of rules by which events change the state."""

from __future__ import annotations

from typing import get_args

from executor.kernel.core.events import TELLS_ONLY, Event
from executor.kernel.core.evolve import _APPLY, _tells_only


def test_every_type_of_event_has_a_rule() -> None:
    assert set(_APPLY) == set(get_args(Event))


def test_an_event_that_only_tells_something_changes_no_state() -> None:
    assert {_APPLY[cls] for cls in TELLS_ONLY} == {_tells_only}
