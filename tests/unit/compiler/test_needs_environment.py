from __future__ import annotations

from typing import Any

import pytest

from compiler.needs import environment_names
from executor.blocks.types.registry import Registry

CATALOG = Registry.load()


def names(params: Any, type: str = "set", known: tuple[str, ...] = (), **block: Any) -> list[str]:
    document = {"blocks": {"a": {"type": type, "params": params, **block}}}
    return list(environment_names(document, CATALOG, known))


def test_by_name_the_blocks_in_document_order() -> None:
    document = {
        "blocks": {
            "z": {"type": "set", "params": {"value": ["${B} ${A}", {"x": "${B}"}]}},
            "a": {"type": "set", "params": {"value": "${A}"}},
        }
    }
    assert environment_names(document, CATALOG) == {"B": ["z"], "A": ["z", "a"]}


def test_names_that_are_set_count_however_they_are_written() -> None:
    assert names({"value": "${lower} ${UPPER}"}) == ["UPPER"]
    assert names({"value": "${lower} ${UPPER}"}, known=("lower",)) == ["lower", "UPPER"]


def test_in_programs_what_is_javascript_stays_javascript() -> None:
    code = "const NAME = 1; const key = '${KEY}'; // ${COMMENT}\nreturn `${NAME} ${key} ${TOKEN}` + ${PLAIN}"
    assert names({"code": code}, "function") == ["KEY", "TOKEN", "PLAIN"]
    assert names({"cases": [{"id": "a", "when": "${LIMIT} > 3"}]}, "condition") == ["LIMIT"]
    assert names({}, policy={"skip_if": "'${SKIP}' === 'yes'"}) == ["SKIP"]


def test_a_note_reads_nothing() -> None:
    assert names({"text": "costs ${PRICE}"}, "note") == []


def test_of_a_type_that_is_not_known_every_text_counts() -> None:
    assert names({"any": ["${X}"]}, "nonsense") == ["X"]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"blocks": None},
        {"blocks": []},
        {"blocks": {"a": None, "b": 1, "c": []}},
        {"blocks": {"a": {"type": 5, "params": "${X}", "policy": "p"}}},
        {"blocks": {"a": {"type": "function", "params": {"code": {"x": ["y"]}}, "policy": {"skip_if": 1}}}},
    ],
)
def test_documents_that_are_wrong_have_no_names(document: dict[str, Any]) -> None:
    assert environment_names(document, CATALOG) == {}
