"""Settings about the queue: what is accepted, and what is said about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import Compiled, compile_document
from compiler.plan import Limit, Rate
from tests.unit.compiler.support import CATALOG


def compiled(**settings: Any) -> Compiled:
    document = {"format": "weft/1", "name": "w", "settings": settings, "blocks": {"start": {"type": "start"}}}
    return compile_document(document, CATALOG)


def test_settings_are_in_the_plan() -> None:
    plan = compiled(pool="gpu", priority=-3, fair='<input.customer ?? "none">').plan
    assert plan is not None
    assert (plan.settings.pool, plan.settings.priority) == ("gpu", -3)
    assert plan.settings.fair == '<input.customer ?? "none">'


def test_limits_and_rates_are_in_the_plan() -> None:
    plan = compiled(limits=[{"key": "a <input.b>", "at_most": 5}], rates=[{"key": "k", "per_s": 0.5}]).plan
    assert plan is not None
    assert (plan.settings.limits, plan.settings.rates) == ((Limit("a <input.b>", 5),), (Rate("k", 0.5),))
    (unknown,) = compiled(limits=[{"key": "a", "at_most": 5, "atmost": 5}]).diagnostics
    assert (unknown.code, unknown.pointer) == ("field_unknown", "/settings/limits/0/atmost")


def test_a_document_without_them_has_the_plan_it_always_had() -> None:
    plan = compiled().plan
    assert plan is not None
    assert b"pool" not in plan.encoded and b"fair" not in plan.encoded and b"priority" not in plan.encoded


@pytest.mark.parametrize(
    ("settings", "pointer", "code"),
    [
        ({"pool": ""}, "/settings/pool", "field_invalid"),
        ({"pool": "two words"}, "/settings/pool", "field_invalid"),
        ({"priority": 11}, "/settings/priority", "field_invalid"),
        ({"priority": "high"}, "/settings/priority", "field_invalid"),
        ({"fair": ""}, "/settings/fair", "field_invalid"),
        ({"fair": "<start.customer>"}, "/settings/fair", "setting_reference"),
        ({"fair": "${CUSTOMER}"}, "/settings/fair", "setting_reference"),
        ({"limits": [{"key": "k", "at_most": 0}]}, "/settings/limits/0/at_most", "field_invalid"),
        ({"limits": {}}, "/settings/limits", "field_invalid"),
        ({"limits": [{"key": "k", "at_most": 1, "of": "block"}]}, "/settings/limits/0/of", "limit_of_block"),
        ({"limits": [{"key": "<start.a>", "at_most": 1}]}, "/settings/limits/0/key", "setting_reference"),
        ({"rates": [{"key": "k", "per_s": 0}]}, "/settings/rates/0/per_s", "field_invalid"),
        (
            {"rates": [{"key": "k", "per_s": 1}, {"key": "<a>", "per_s": 1}]},
            "/settings/rates/1/key",
            "setting_reference",
        ),
        ({"fair": "<input.customer ?? none>"}, "/settings/fair", "reference_default_invalid"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_a_hint(settings: Any, pointer: str, code: str) -> None:
    (finding,) = compiled(**settings).diagnostics
    assert (finding.severity, finding.pointer, finding.code) == ("error", pointer, code)
    assert finding.hint
