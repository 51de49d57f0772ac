"""`make release`: what forbids a release, and that the version stands once. CI builds one with `--dry-run`."""

from __future__ import annotations

import json

import pytest

from docs import release

CLIENT = (release.ROOT / "web" / "client" / "package.json").read_text(encoding="utf-8")
CHANGELOG = (release.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
DATED = f"# Changelog\n\n## {release.version()}, 2027-01-31\n\nFirst version.\n"


def test_the_copies_of_the_version_are_right() -> None:
    assert json.loads(CLIENT)["version"] == release.version()
    assert f"## {release.version()}" in CHANGELOG


def test_a_dated_clean_tree_is_released() -> None:
    assert release.problems(DATED, CLIENT, "") == []


@pytest.mark.parametrize(
    ("changelog", "client", "changed", "problem"),
    [
        (DATED.replace(", 2027-01-31", ", unreleased"), CLIENT, "", "needs its date"),
        (DATED.replace(", 2027-01-31", ""), CLIENT, "", "needs its date"),
        ("# Changelog\n", CLIENT, "", "no section"),
        (DATED, '{"version": "0.0.9"}', "", "web/client/package.json has version 0.0.9"),
        (DATED, CLIENT, " M README.md\n", "changes that are not committed"),
    ],
)
def test_what_forbids_it(changelog: str, client: str, changed: str, problem: str) -> None:
    (found,) = release.problems(changelog, client, changed)
    assert problem in found
