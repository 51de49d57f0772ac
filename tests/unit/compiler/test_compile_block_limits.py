"""`policy.limit`: at most so many attempts at once, by a key that may have references."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.needs import environment_names
from compiler.plan import Limit
from tests.support.documents import chain
from tests.unit.compiler.support import CATALOG

HTTP = {"type": "http", "params": {"url": "https://crm.example"}}


def compiled(limit: Any) -> Any:
    return compile_document(chain("a", "b", a=HTTP, b={**HTTP, "policy": {"limit": limit}}), CATALOG)


def test_the_key_reads_what_the_block_reads() -> None:
    plan = compiled({"key": "crm <input.customer> <a.data>", "at_most": 5}).plan
    assert plan is not None and plan.has_limits
    (node,) = [node for node in plan.nodes if node.id == "b"]
    assert node.policy.limit == Limit("crm <input.customer> <a.data>", 5)
    assert sorted(ref.text for ref in node.needs) == ["a.data", "input.customer"]


def test_a_plan_without_limits_is_the_plan_it_always_was() -> None:
    plan = compile_document(chain("a", a=HTTP), CATALOG).plan
    assert plan is not None and not plan.has_limits and b'"limit":[' not in plan.encoded


@pytest.mark.parametrize(
    ("limit", "place", "code"),
    [
        ({"key": "k", "at_most": 0}, "/at_most", "field_invalid"),
        ({"key": "", "at_most": 1}, "/key", "field_invalid"),
        ({"at_most": 1}, "/key", "field_invalid"),
        ({"key": "k", "at_most": 1, "of": "block"}, "/of", "field_unknown"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(limit: Any, place: str, code: str) -> None:
    (finding,) = compiled(limit).diagnostics
    assert (finding.pointer, finding.code, finding.block) == (f"/blocks/b/policy/limit{place}", code, "b")


def test_a_container_has_no_place_of_its_own() -> None:
    document = chain("a", "l", a=HTTP, l={"type": "loop", "params": {"mode": "for", "count": 1}})
    document["blocks"]["l"]["policy"] = {"limit": {"key": "k", "at_most": 1}}
    found = [each for each in compile_document(document, CATALOG).diagnostics if each.code == "policy_unread"]
    assert [(each.pointer, each.severity) for each in found] == [("/blocks/l/policy/limit", "warning")]


def test_environment_names_in_the_key_count() -> None:
    document = chain("a", a={**HTTP, "policy": {"limit": {"key": "crm ${TENANT}", "at_most": 1}}})
    assert environment_names(document, CATALOG) == {"TENANT": ["a"]}
