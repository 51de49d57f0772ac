from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.graph import CYCLES_MAX, Graph

DIAMOND = Graph("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], ["a"])


def test_order_keeps_document_order_where_it_may() -> None:
    assert Graph("zyxa", [("a", "z")]).order == ["y", "x", "a", "z"]
    assert DIAMOND.order == ["a", "b", "c", "d"]


def test_upstream_and_domination() -> None:
    assert DIAMOND.is_upstream("a", "d")
    assert not DIAMOND.is_upstream("d", "a")
    assert not DIAMOND.is_upstream("b", "c")
    assert not DIAMOND.is_upstream("a", "a")
    assert DIAMOND.dominates("a", "d")
    assert not DIAMOND.dominates("b", "d")
    assert DIAMOND.dominates("d", "d")


def test_cycles_are_found_once_per_knot_in_document_order() -> None:
    graph = Graph("abcde", [("d", "e"), ("e", "d"), ("a", "b"), ("b", "a"), ("c", "c")])
    assert graph.cycles() == [["a", "b"], ["c"], ["d", "e"]]
    assert DIAMOND.cycles() == []
    many = Graph([f"n{i}" for i in range(100)], [(f"n{i}", f"n{i}") for i in range(100)])
    assert len(many.cycles()) == CYCLES_MAX


def test_long_chains_and_wide_fans_are_cheap() -> None:
    chain = [f"n{i}" for i in range(5_000)]
    graph = Graph(chain, list(pairwise(chain)), ["n0"])
    began = time.process_time()
    assert graph.is_upstream("n0", "n4999")
    assert graph.dominates("n0", "n4999")
    assert graph.cycles() == []
    fan = Graph(["s", *chain, "t"], [("s", c) for c in chain] + [(c, "t") for c in chain], ["s"])
    assert fan.is_upstream("s", "t")
    assert not fan.dominates("n7", "t")
    assert time.process_time() - began < 5


@settings(max_examples=100, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_against_the_plain_definitions(pairs: set[tuple[int, int]]) -> None:
    names = [str(i) for i in range(8)]
    edges = [(names[a], names[b]) for a, b in pairs if a < b]
    entries = [n for n in names if all(target != n for _, target in edges)]
    graph = Graph(names, edges, entries)
    for a in names:
        below = graph.reach(graph.after[a])
        without = Graph(names, [e for e in edges if a not in e]).reach(n for n in entries if n != a)
        for b in names:
            assert graph.is_upstream(a, b) == (b in below and a != b)
            assert graph.dominates(a, b) == (a == b or b not in without)


def test_networkx_is_not_loaded_by_the_plan() -> None:
    code = (
        "import sys, compiler.plan, compiler.keys, compiler.graph, compiler.compile; print('networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
