"""What the catalogue tells an editor: every param can be shown in a form, every block on a card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from compiler.schema import Checker, accepts
from executor.blocks.types import approval, signal, wait
from executor.blocks.types.registry import Registry

CATALOGUE = Registry.load().catalogue()
WIDGETS = {
    "text", "longtext", "code", "json", "number", "boolean", "select", "keyvalues", "schema", "reference", "list",
    "fields", "connection", "tool_server", "workflow",
}  # fmt: skip
NOTES = ("title", "description", "x-ui", "x-weft", "x-titles", "x-when", "x-secret-when", "x-url")
KEYS = {"order", "widget", "rows", "advanced", "handles", "language", "choices", "auth"}


@pytest.fixture(params=CATALOGUE, ids=lambda entry: entry["type"])
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_every_param_has_title_description_and_a_widget(entry: dict[str, Any]) -> None:
    for where, properties in forms(entry["params"]):
        for name, param in properties.items():
            assert param["title"] and param["description"], f"{where}/{name}"
            hints = param["x-ui"]
            assert hints["widget"] in WIDGETS and hints.keys() <= KEYS, f"{where}/{name}"
            assert hints.get("rows", 1) >= 1
            for other, values in param.get("x-when", {}).items():
                allowed = properties[other].get("enum")
                assert allowed is None or set(values) <= set(allowed), f"{where}/{name}"
        orders = [param["x-ui"]["order"] for param in properties.values()]
        assert len(set(orders)) == len(orders), f"two params of {where} have the same place"


def test_widgets_fit_the_schema(entry: dict[str, Any]) -> None:
    for where, properties in forms(entry["params"]):
        for name, param in properties.items():
            widget = param["x-ui"]["widget"]
            at = f"{where}/{name}"
            assert (widget == "select") == ("enum" in param), at
            assert (widget == "boolean") == (param.get("type") == "boolean"), at
            if "language" in param["x-ui"]:
                assert (widget, param["x-weft"]) == ("code", "literal"), at
            else:
                assert (widget == "code") == (param.get("x-weft") in ("code", "expression")), at
            if param.get("type") in ("number", "integer"):
                assert widget == "number", at
            if widget == "list":
                assert "items" in param or any("items" in option for option in param["oneOf"]), at


def test_choices_have_labels(entry: dict[str, Any]) -> None:
    """HTTP methods and functions of the server are their own labels."""
    for where, properties in forms(entry["params"]):
        for name, param in properties.items():
            values = [value for value in param.get("enum", ()) if not re.fullmatch("[A-Z]+", value)]
            titles = param.get("x-titles", {})
            assert set(values) <= titles.keys(), f"{where}/{name}"
            assert all(title[0].isupper() for title in titles.values()), f"{where}/{name}"


def test_hints_cost_no_time_at_compile(entry: dict[str, Any]) -> None:
    """The quick check knows the keyword; else every block would go through the slow validator."""
    for _, properties in forms(entry["params"]):
        for param in properties.values():
            plain = {key: value for key, value in param.items() if key in NOTES}
            assert accepts(plain, "any")


def test_handles_come_from_the_params_that_say_so() -> None:
    registry = Registry.load()
    made: dict[str, dict[str, Any]] = {
        "condition": {"cases": [{"id": "a", "when": "1"}, {"id": "b"}]},
        "router": {"routes": [{"id": "a"}], "default": "b"},
        "model_router": {"routes": [{"id": "a"}, {"id": "b"}]},
        "approval": {"actions": ["a", "b"]},
    }
    for type, params in made.items():
        spec = registry.get(type)
        assert spec is not None and spec.cases is not None
        handles: list[str] = []
        for name, param in spec.params["properties"].items():
            match param["x-ui"].get("handles"):
                case "id":
                    handles += [item["id"] for item in params[name]]
                case "items":
                    handles += params[name]
                case "value":
                    handles.append(params[name])
        assert handles == [case.id for case in spec.cases(params)] == ["a", "b"]
    others = [entry for entry in CATALOGUE if entry["type"] not in made]
    assert not any(
        "handles" in param["x-ui"] for entry in others for _, form in forms(entry["params"]) for param in form.values()
    )


def test_sentences_name_params_that_exist(entry: dict[str, Any]) -> None:
    assert entry["icon"] and entry["sentence"]
    for sentence in entry["sentence"].split(" | "):
        for path in re.findall(r"\{([^}]*)\}", sentence):
            assert exists(entry["params"], path), path
    assert re.fullmatch(r"([^{}]|\{[A-Za-z_]+(\[\d*\])?(\.[A-Za-z_]+)*\})*", entry["sentence"])


def test_hints_say_nothing_to_the_compiler() -> None:
    for entry in CATALOGUE:
        kinds = Checker(entry["params"]).kinds({"code": "1", "text": "t", "condition": "true"})
        assert all(kind in ("expression", "code", "literal") for kind in kinds.values())


def forms(schema: dict[str, Any], where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The properties of the params, and those of the items of lists in them."""
    properties = schema.get("properties")
    if properties:
        yield where, properties
        for name, param in properties.items():
            for option in [param, *param.get("oneOf", [])]:
                if isinstance(option.get("items"), dict):
                    yield from forms(option["items"], f"{where}/{name}")


def exists(schema: dict[str, Any], path: str) -> bool:
    found: list[dict[str, Any]] = [schema]
    for part in re.findall(r"[A-Za-z_]+|\[\d*\]", path):
        options = [option for one in found for option in [one, *one.get("oneOf", [])]]
        if part.startswith("["):
            found = [option["items"] for option in options if "items" in option]
        else:
            found = [option["properties"][part] for option in options if part in option.get("properties", {})]
    return bool(found)


@pytest.mark.parametrize("module", [wait, signal, approval])
def test_the_params_are_a_json_schema_with_titles(module: Any) -> None:
    params = module.block.spec.params
    Draft202012Validator.check_schema(params)
    assert all(field.get("title") for field in params["properties"].values())
