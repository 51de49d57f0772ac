"""The examples a wheel or a checkout comes with."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import httpx

from server.api.server import ORDER, read_examples
from server.shipped import PACKAGE, examples_folder

ROOT = Path(__file__).parents[4]


async def test_they_are_listed_and_run_as_they_are(client: httpx.AsyncClient) -> None:
    examples = (await client.get("/api/examples")).json()["examples"]
    assert len(examples) >= 6
    for example in examples:
        assert set(example) == {"name", "title", "description", "document", "template"}
        assert example["name"] == example["document"]["name"]
        assert example["title"][0].isupper() and "-" not in example["title"]
        if example["template"]:
            continue  # which tests/examples/test_templates.py runs
        assert example["description"].startswith("Teaches ")
        checked = await client.post("/api/validate", json={"document": example["document"]})
        found = [one for one in checked.json()["diagnostics"] if one["code"] != "connection_unknown"]
        assert checked.json()["valid"] and not found  # a connection is made where the example is tried
    names = [example["name"] for example in examples if not example["template"]]
    templates = [example["name"] for example in examples[len(names) :]]
    assert templates == sorted(path.stem for path in (ROOT / "examples" / "templates").glob("*.json"))
    assert sorted(names) == sorted(path.stem for path in (ROOT / "examples").glob("*.json"))
    assert tuple(names[: len(ORDER)]) == ORDER, "what a newcomer should open first comes first"
    assert names[len(ORDER) :] == sorted(names[len(ORDER) :])


async def test_a_copy_is_a_draft(client: httpx.AsyncClient) -> None:
    example = (await client.get("/api/examples")).json()["examples"][0]
    draft = (await client.post("/api/drafts", json={"document": example["document"]})).json()
    assert (draft["name"], draft["diagnostics"]) == (example["name"], [])


def test_a_wheel_has_them_in_the_package_a_checkout_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "server"
    package.mkdir(parents=True)
    beside = package.parent / "examples"
    assert examples_folder(package) == beside
    assert read_examples(beside) == [], "neither is there"
    (package / "examples").mkdir()
    document: dict[str, Any] = {"format": "weft/1", "blocks": {}}
    (package / "examples" / "two-words.json").write_text(json.dumps(document))
    (example,) = read_examples(examples_folder(package))
    assert (example.name, example.title, example.description) == ("two-words", "Two words", "")
    assert examples_folder(PACKAGE) == ROOT / "examples"


def test_the_build_puts_them_where_the_package_looks() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"]["examples"] == "server/examples"
    assert "server" in wheel["packages"]
