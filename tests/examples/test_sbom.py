"""`make sbom`: nothing that is installed is left out, and each package has a license or is called unknown."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from docs import sbom

ROOT = Path(__file__).parents[2]
LOCKED = set(re.findall(r"(?m)^([\w.-]+)(?:\[.*\])?==(\S+)", (ROOT / "requirements.lock").read_text()))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    assert sbom.main(folder / "new") == 0
    return folder / "new"


@pytest.fixture(scope="module")
def bom(written: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((written / sbom.SBOM).read_text())
    return read


def of(bom: dict[str, Any], kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = [each for each in bom["components"] if each["purl"].startswith(f"pkg:{kind}/")]
    return {("/".join(filter(None, (each.get("group"), each["name"]))), each["version"]): each for each in found}


def test_it_is_valid(written: Path) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str((written / sbom.SBOM).read_text()) is None


def test_every_locked_package_is_in_both_with_a_license(written: Path, bom: dict[str, Any]) -> None:
    assert len(LOCKED) > 50
    python = of(bom, "pypi")
    assert set(python) == LOCKED
    text = (written / sbom.LICENSES).read_text()
    lock = (ROOT / "requirements.lock").read_text()
    unknown = set()
    for (name, its_version), component in python.items():
        said = [
            each.get("expression") or each["license"].get("id") or each["license"]["name"]
            for each in component["licenses"]
        ]
        assert len(said) == 1 and said[0], name
        assert f"## {name} - {its_version} (" in text
        hashes = {each["value"] for each in component.get("properties", ()) if each["name"] == "weft:sha256"}
        hashes |= {each["content"] for each in component.get("hashes", ())}
        assert hashes and all(f"sha256:{each}" in lock for each in hashes), name
        if said == [sbom.UNKNOWN]:
            unknown.add((name, its_version))
    # Unknown is only what this Python on this machine does not install: what it has says its license.
    assert unknown == {(name, its_version) for name, its_version in LOCKED if not has(name, its_version)}
    assert sum(len(hash_) for hash_ in re.findall(r"sha256:([0-9a-f]{64})", lock)) == 64 * sum(
        len(package.hashes) for package in sbom.python_packages()
    )


def has(name: str, its_version: str) -> bool:
    try:
        return version(name) == its_version
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(
    ("name", "license"), [("httpx", "BSD-3-Clause"), ("starlette", "BSD-3-Clause"), ("rich", "MIT")]
)
def test_licenses_are_those_of_the_packages(written: Path, bom: dict[str, Any], name: str, license: str) -> None:
    (component,) = (each for (its_name, _), each in of(bom, "pypi").items() if its_name == name)
    assert [each["license"]["id"] for each in component["licenses"]] == [license]
    (file,) = (each for each in distribution(name).files or () if "LICENSE" in each.name)
    assert Path(str(file.locate())).read_text().strip() in (written / sbom.LICENSES).read_text()


def test_every_npm_package_that_the_editor_bundles_is_in_it(bom: dict[str, Any]) -> None:
    bundled = ROOT / "server" / "_web" / "third-party-licenses.md"
    if not bundled.exists():
        pytest.skip("the editor is not built here")
    named = set(re.findall(r"(?m)^## (\S+) - (\S+) \(", bundled.read_text()))
    assert len(named) > 20
    assert named <= set(of(bom, "npm"))


def test_what_needs_what(bom: dict[str, Any]) -> None:
    needs = {each["ref"]: {ref.partition("@")[0] for ref in each.get("dependsOn", ())} for each in bom["dependencies"]}
    assert {"pkg:pypi/starlette", "pkg:pypi/pydantic-ai-slim", "pkg:npm/react"} <= needs["weft"]
    (httpx,) = (ref for ref in needs if ref.startswith("pkg:pypi/httpx@"))
    assert needs[httpx] == {"pkg:pypi/anyio", "pkg:pypi/certifi", "pkg:pypi/httpcore", "pkg:pypi/idna"}
    reached, queue = set(), ["weft"]
    while queue:
        ref = queue.pop()
        if ref not in reached:
            reached.add(ref)
            queue += next(each.get("dependsOn", []) for each in bom["dependencies"] if each["ref"] == ref)
    missing = {
        (name, its_version)
        for (name, its_version), each in of(bom, "pypi").items()
        if has(name, its_version) and each["bom-ref"] not in reached
    }
    assert missing == set()
