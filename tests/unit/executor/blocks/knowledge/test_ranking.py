from __future__ import annotations

import random
from array import array

from executor.blocks.knowledge.ranking import by_words, fused, nearest, packed, similarities

SIZE = 512


def test_a_vector_is_stored_with_length_one_and_with_its_signs() -> None:
    vector, signs = packed([3.0, -4.0, 0.0])
    assert [round(number, 6) for number in array("f", vector)] == [0.6, -0.8, 0.0] and signs == b"\x04"
    other, _ = packed([-3.0, 4.0, 0.0])
    assert {n: round(found, 6) for n, found in similarities(vector, [(1, vector), (2, other)]).items()} == {1: 1, 2: -1}


def test_the_nearest_by_signs_contain_the_nearest() -> None:
    """With 2,000 vectors in 50 groups, the nearest and nine tenths of the ten nearest are candidates."""
    dice = random.Random(7)
    groups = [[dice.gauss(0, 1) for _ in range(SIZE)] for _ in range(50)]
    made = [[number + dice.gauss(0, 1) for number in dice.choice(groups)] for _ in range(2_000)]
    stored = {n: packed(vector) for n, vector in enumerate(made)}
    signs = [(n, signs) for n, (_, signs) in stored.items()]
    hits = firsts = 0
    for _ in range(10):
        vector, own = packed([number + dice.gauss(0, 1) for number in dice.choice(groups)])
        exact = similarities(vector, ((n, theirs) for n, (theirs, _) in stored.items()))
        best = sorted(exact, key=lambda n: -exact[n])[:10]
        found = nearest(own, signs)
        hits += len(set(best) & set(found))
        firsts += best[0] in found
    assert hits >= 90 and firsts == 10


def test_rankings_are_joined_by_places() -> None:
    both = fused({1: 0.9, 2: 0.8, 3: 0.1}, {3: 50.0, 2: 60.0})
    assert [n for n, _ in both] == [2, 3, 1]
    assert fused({5: 0.2}) == [(5, 1.0)] and fused({}, {}) == []


def test_a_seldom_word_counts_more() -> None:
    scores = by_words([[(1, 1)], [(n, 1) for n in range(1, 50)], [(2, 9)]], 100)
    assert sorted(scores, key=lambda n: -scores[n])[:2] == [2, 1]
