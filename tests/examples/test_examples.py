"""Every example compiles without a finding, says what it teaches, and is laid out so that a canvas can show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compiler.compile import compile_document
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.json"))
BLOCK_SIZE = (208, 96)  # pixels of a plain block on the canvas
AGENT_SIZE = (396, 176)
HEADER = 40  # of a container

Json = dict[str, Any]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest) -> Json:
    document: Json = json.loads(request.param.read_text())
    assert document["name"] == request.param.stem
    return document


def test_there_are_examples_and_the_list_is_complete() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert len(EXAMPLES) >= 6
    for path in EXAMPLES:
        assert f"]({path.name})" in listed


def test_it_compiles_without_errors_or_warnings(example: Json, registry: Registry) -> None:
    compiled = compile_document(example, registry)
    assert compiled.diagnostics == []
    assert compiled.plan is not None


def test_it_needs_no_key(example: Json) -> None:
    text = json.dumps(example)
    assert text.count("${") == text.count("${WEFT_BASE_URL}")


def test_its_description_says_what_it_teaches(example: Json) -> None:
    assert example["description"].startswith("Teaches ")


def test_its_input_schema_is_one_and_its_examples_fit(example: Json) -> None:
    schema = example.get("input")
    if schema is None:
        return
    jsonschema.Draft202012Validator.check_schema(schema)
    for field in schema["properties"].values():
        assert field["title"]
        assert "default" in field or "examples" in field or field.get("format") == "file"  # which is uploaded
        for value in [*field.get("examples", []), *([field["default"]] if "default" in field else [])]:
            jsonschema.validate(value, field)


def test_blocks_do_not_overlap_and_children_fit_into_their_container(example: Json) -> None:
    blocks_are_apart(example)


def blocks_are_apart(document: Json) -> None:
    blocks = document["blocks"]
    by_parent: dict[str | None, list[str]] = {}
    for block_id, block in blocks.items():
        by_parent.setdefault(block.get("parent"), []).append(block_id)
    for parent, children in by_parent.items():
        for child in children:
            x, y, right, bottom = _box(blocks[child])
            assert x % 16 == 0 and y % 16 == 0, f"{child} is off the grid"
            if parent is not None:
                width, height = blocks[parent]["size"]
                assert x >= 0 and y >= HEADER and right <= width and bottom <= height, f"{child} leaves {parent}"
        for one, other in combinations(children, 2):
            assert _apart(_box(blocks[one]), _box(blocks[other])), f"{one} and {other} overlap"


def _box(block: Json) -> tuple[int, int, int, int]:
    """left, top, right, bottom within the container."""
    x, y = block["at"]
    width, height = block.get("size", AGENT_SIZE if block["type"] == "agent" else BLOCK_SIZE)
    return x, y, x + width, y + height


def _apart(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
