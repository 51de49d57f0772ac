from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.graph import CYCLES_MAX, Graph
from tests.support.cost import computes_within

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
    with computes_within(5):
        assert graph.is_upstream("n0", "n4999")
        assert graph.dominates("n0", "n4999")
        assert graph.cycles() == []
        fan = Graph(["s", *chain, "t"], [("s", c) for c in chain] + [(c, "t") for c in chain], ["s"])
        assert fan.is_upstream("s", "t")
        assert not fan.dominates("n7", "t")


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


@settings(max_examples=200, deadline=None)
@given(st.permutations(range(7)), st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_order_and_dominators_are_those_of_networkx(names: list[int], pairs: set[tuple[int, int]]) -> None:
    blocks = [str(name) for name in names]
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(blocks)
    graph.add_edges_from((str(a), str(b)) for a, b in pairs if a != b)
    entries = [block for block in blocks if not graph.in_degree(block)]
    ours = Graph(blocks, list(graph.edges), entries)
    if not nx.is_directed_acyclic_graph(graph):
        assert ours.order == blocks
        assert ours.cycles()
        return
    assert ours.order == list(nx.lexicographical_topological_sort(graph, key=blocks.index))
    graph.add_edges_from(("", entry) for entry in entries)
    dominators = nx.immediate_dominators(graph, "")
    for block in blocks:
        above, at = {block}, block
        while at := dominators[at]:
            above.add(at)
        assert {other for other in blocks if ours.dominates(other, block)} == above


_COMPILE = """
import json, sys
from compiler.compile import compile_document
from executor.blocks.types.registry import Registry
from pathlib import Path

catalog = Registry.load()
for path in Path("examples").glob("*.json"):
    assert compile_document(path.read_bytes(), catalog).plan is not None, path
print("networkx" in sys.modules)
start, note = {"type": "start"}, {"type": "set"}
edges = [{"source": s, "target": t} for s, t in (("a", "b"), ("b", "c"), ("c", "b"))]
document = {"format": "weft/1", "blocks": {"a": start, "b": note, "c": note}, "edges": edges}
codes = [finding.code for finding in compile_document(json.dumps(document), catalog).diagnostics]
print("cycle" in codes, "networkx" in sys.modules)
"""


def test_networkx_is_loaded_for_a_cycle_and_for_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", _COMPILE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
