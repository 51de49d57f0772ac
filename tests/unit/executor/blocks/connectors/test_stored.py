"""Connectors of installed packages: their metadata is read from the path, as pip leaves it there."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.connectors.stored import connector, connectors
from executor.errors import BadRequest

Install = Callable[[str, dict[str, Any]], None]


def tea(**more: Any) -> dict[str, Any]:
    operation = {"title": "List orders", "path": "/orders"}
    return {
        "format": "weft-connector/1", "service": "tea", "title": "Tea", "base_url": "https://tea.example",
        "auth": {"kind": "none"}, "operations": {"list": operation}, **more,
    }  # fmt: skip


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(tmp_path)

    def made(name: str, documents: dict[str, Any]) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        for file, document in documents.items():
            (tmp_path / name / file).write_text(json.dumps(document))
        about = tmp_path / f"{name}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[weft.connectors]\n{name} = {name}\n")
        importlib.invalidate_caches()

    return made


def titles() -> dict[str, str]:
    return {block.spec.type: block.spec.title for block in connectors()}


def test_a_package_brings_its_connectors(install: Install) -> None:
    install("weft_tea_one", {"tea.json": tea(), "milk.json": tea(service="milk", title="Milk"), "notes.txt": {}})
    assert {"connector.tea": "Tea", "connector.milk": "Milk"}.items() <= titles().items()


def test_one_of_weft_or_of_another_package_is_not_replaced(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    slack = titles()["connector.slack"]
    install("weft_tea_a", {"tea.json": tea(), "slack.json": tea(service="slack", title="Mine")})
    install("weft_tea_b", {"tea.json": tea(title="Other")})
    found = titles()
    assert (found["connector.tea"], found["connector.slack"]) == ("Tea", slack)
    assert "connector.slack of weft_tea_a is left out: weft has one" in caplog.text
    assert "connector.tea of weft_tea_b is left out: weft_tea_a has one" in caplog.text


def test_a_folder_replaces_one_of_a_package(install: Install, tmp_path: Path) -> None:
    install("weft_tea_two", {"tea.json": tea()})
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "tea.json").write_text(json.dumps(tea(title="Own")))
    assert {block.spec.type: block.spec.title for block in connectors(folder)}["connector.tea"] == "Own"


def test_what_cannot_be_used_is_named_and_left_out(
    install: Install, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    install("weft_tea_three", {"broken.json": tea(auth={"kind": "smell"}), "tea.json": tea()})
    install("weft_tea_four", {})
    (tmp_path / "weft_tea_four" / "__init__.py").write_text("import nothing_of_this_name")
    assert "connector.tea" in titles()
    assert "connector broken.json of weft_tea_three is left out" in caplog.text
    assert "the connectors of weft_tea_four (weft_tea_four) are left out" in caplog.text


def test_a_document_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "tea.json"
    file.write_text(json.dumps(tea()))
    assert connector(file).spec.type == "connector.tea"
    file.write_text("{}")
    with pytest.raises(BadRequest) as refused:
        connector(str(file))
    assert refused.value.extra["errors"]
