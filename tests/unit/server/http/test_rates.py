"""What a full table of tries forgets."""

from __future__ import annotations

from server.http.rates import KEYS_MAX, Buckets


def test_a_full_table_forgets_the_key_that_was_used_longest_ago() -> None:
    buckets = Buckets(1, 0.001, lambda: 0.0)
    for number in range(KEYS_MAX):
        assert buckets.spend(f"address {number}") == 0
    assert buckets.spend("address 0") > 0, "used just now, so another one is the oldest"
    assert buckets.spend("new") == 0
    assert buckets.spend("new") > 0, "the newest key is limited in a full table as well"
    assert buckets.spend("address 0") > 0
    assert buckets.spend("address 1") == 0, "the oldest one was forgotten, which lets it try again"
