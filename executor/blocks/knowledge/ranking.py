"""Compares vectors, and joins two rankings. Only the standard library: 10,000 vectors of 1,536 numbers take 25 ms.

Comparing all vectors exactly would take 1.3 s for 10,000 in Python. So each has its signs beside it, one bit for each
number: vectors that are near differ in few of them, and a processor counts these at once. The CANDIDATES with the
fewest are then compared exactly. See docs/decisions/0091-knowledge.md.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import mul
from typing import Final

CANDIDATES: Final = 100  # of a search, compared exactly
RANK_OFFSET: Final = 60  # of reciprocal rank fusion, as in the paper of Cormack, Clarke and Buettcher (2009)

_BITS: Final = bytes.maketrans(bytes((0, 1)), b"01")


def packed(numbers: Sequence[float]) -> tuple[bytes, bytes]:
    """Return a vector as it is stored: float32 of length 1, and its signs."""
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    scale = 1 / length if length else 0.0
    bits = bytes(number > 0 for number in numbers).translate(_BITS)
    return array("f", [number * scale for number in numbers]).tobytes(), int(bits, 2).to_bytes(
        -(-len(bits) // 8), "big"
    )


def nearest(signs: bytes, stored: Iterable[tuple[int, bytes]], limit: int = CANDIDATES) -> list[int]:
    """Return the numbers of those whose signs differ least from these."""
    mine, whole = int.from_bytes(signs, "big"), int.from_bytes
    counted = [((whole(theirs, "big") ^ mine).bit_count(), n) for n, theirs in stored]
    return [n for _, n in nsmallest(limit, counted)]


def similarities(vector: bytes, stored: Iterable[tuple[int, bytes]]) -> dict[int, float]:
    """Return the cosine of each vector with this one."""
    mine = array("f", vector)
    return {n: sum(map(mul, mine, memoryview(theirs).cast("f"))) for n, theirs in stored}


def by_words(postings: Sequence[Sequence[tuple[int, int]]], total: int) -> dict[int, float]:
    """Return a score for each chunk, from the chunks and counts of each word: a word counts more, the fewer chunks it
    is in, and less, the oftener it is there already (as in BM25; chunks are about equally long)."""
    scores: dict[int, float] = {}
    for found in postings:
        weight = math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
        for chunk, count in found:
            scores[chunk] = scores.get(chunk, 0.0) + weight * count / (count + 1.2)
    return scores


def fused(*rankings: Mapping[int, float]) -> list[tuple[int, float]]:
    """Join rankings by reciprocal rank fusion: a chunk counts by its places, not by scores of different kinds. The
    score of one that is first in all of them is 1."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, n in enumerate(sorted(ranking, key=lambda n: (-ranking[n], n))):
            scores[n] = scores.get(n, 0.0) + (RANK_OFFSET + 1) / (RANK_OFFSET + 1 + place) / len(rankings)
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))
