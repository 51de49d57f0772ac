"""The recorded lane: the fold of the API has the same items as the editor (`web/test/lane.test.ts`)."""

from __future__ import annotations

from tests.vectors.lanes import lane_at, load, record, seqs_of


def test_the_lane_after_some_events_is_what_was_recorded() -> None:
    stored = load()
    events = stored["events"]
    assert [lane_at(events, seq) for seq in seqs_of(events)] == stored["lanes"]


async def test_a_run_now_has_the_items_of_the_recorded_one() -> None:
    now, stored = await record(), load()
    fields = ("n", "kind", "name", "status", "task", "above", "group")
    was, found = (
        [[item.get(field) for field in fields] for item in one["lanes"][-1]["items"]] for one in (stored, now)
    )
    assert found == was
