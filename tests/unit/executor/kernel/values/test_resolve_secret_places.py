"""Which params of the blocks in this tree may hold a secret."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.schema import checker_of
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry


@pytest.mark.parametrize(
    ("type", "params", "places"),
    [
        ("sql", {"database": "${K}", "query": "SELECT 1", "parameters": {"a": "${K}"}}, {"/database"}),
        ("connector.slack", {"credential": "${K}", "text": "${K}", "base_url": "${K}"}, {"/credential"}),
        ("email", {"to": "${K}", "subject": "${K}", "body": {"a": ["${K}"]}}, {"/body", "/body/a/0"}),
        ("approval", {"title": "${K}", "notify": {"email": "${K}", "webhook": "${K}"}}, {"/notify/webhook"}),
        ("form", {"text": "${K}", "notify": {"webhook": "${K}"}}, {"/notify/webhook"}),
        ("function", {"code": "${K}"}, set()),
    ],
)
def test_params_for_secrets(type: str, params: dict[str, Any], places: set[str]) -> None:
    spec = Registry.load(connectors()).handler(type).spec
    assert checker_of(spec).secret_places(params) == places
