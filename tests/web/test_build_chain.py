"""Whatever `make` installs has a version and a hash; the build tools came in any version before."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = [f"requirements{suffix}.lock" for suffix in ("", "-dev", "-build", "-node", "-peers")]


def test_every_install_of_make_checks_hashes_or_fetches_nothing() -> None:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Makefile").read_text())
    installs = re.findall(r"\$\((?:PEERS_)?PIP\) install.*", text)
    assert len(installs) >= 5
    for install in installs:
        assert "--require-hashes -r requirements" in install or "--no-deps --no-build-isolation -e ." in install, (
            install
        )
    assert "npm install" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_a_hash(lock: str) -> None:
    entries = re.split(r"(?m)^(?=[A-Za-z])", (ROOT / lock).read_text())
    found = [entry for entry in entries if entry.strip()]
    assert found
    for entry in found:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_locks_hold_what_a_build_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build = (ROOT / "requirements-build.lock").read_text()
    for requirement in project["build-system"]["requires"]:
        assert re.search(rf"(?m)^{re.match(r'[a-z-]+', requirement)[0]}==", build), requirement  # type: ignore[index]
    wheel = subprocess.run(
        [sys.executable, "hatch_build.py", "node"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    name = re.match(r"[a-z-]+", wheel)
    assert name is not None and name[0] in (ROOT / "requirements-node.lock").read_text()


def test_a_build_fetches_no_linter() -> None:
    assert "biome" not in (ROOT / "web" / "package-lock.json").read_text()


def test_the_linter_is_locked_for_every_platform_and_for_no_registry() -> None:
    lock = json.loads((ROOT / "web" / "lint" / "package-lock.json").read_text())["packages"]
    for system in ("linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl", "darwin-x64", "darwin-arm64"):
        assert lock[f"node_modules/@biomejs/cli-{system}"]["integrity"].startswith("sha512-"), system
    assert not any("resolved" in package for package in lock.values())
