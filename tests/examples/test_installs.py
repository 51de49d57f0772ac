"""Every documented installation: what it installs is in a lock, with hashes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.server import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [
    *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "web/README.md",
    ROOT / "docs/howto/deploy/Dockerfile", *ROOT.glob("docs/howto/deploy/*.yaml"), ROOT / "Makefile",
]  # fmt: skip
# What a page describes: a message of weft, or that installing builds the editor.
NO_COMMANDS = {"pip install", "pip install ."}
HEAD = re.compile(r"(?:\S*/)?(?:\$\(\w*PIP\)|pip) (?:install|wheel) ")
# Files of a release, installed by name: the first try, and a client in a program whose own lock has the hashes.
RELEASED = re.compile(rf"weft(_client)?-{re.escape(PROJECT['version'])}-py3-none-any\.whl")
FIRST_TRIES = {"README.md", "docs/index.md", "docs/howto/use-the-client.md", "docs/tutorial/in-python.md"}
# Lock -> the extras whose packages it has.
SERVER = {"server", "js", "secrets", "sql", "llm"}
ALL = SERVER | {
    "mcp", "postgres", "mysql", "redis", "sftp", "python", "oidc", "otel", "kubernetes", "dask", "pdf", "html", "excel",
}  # fmt: skip
EXTRAS = {
    "requirements.lock": SERVER,
    "requirements-extras.lock": ALL,
    "requirements-dev.lock": ALL | {"demo", "dev"},
    "requirements-peers.lock": {"peers"},
}


def commands() -> Iterator[tuple[str, list[str]]]:
    """The page and the words of each command that installs something."""
    for page in PAGES:
        if page.name == "CHANGELOG.md" or "decisions" in page.parts:  # what was, not what to do
            continue
        text = page.read_text().replace("\\\n", " ")
        for found in re.finditer(rf"[^`\n]*?({HEAD.pattern}[^`\n]*)", text):
            command = re.split(r"\s#|&&|\|\||;", found[1].replace("$(PIP)", "pip").replace("$(PEERS_PIP)", "pip"))[0]
            if command.strip().rstrip(".,") not in NO_COMMANDS and command.strip() not in NO_COMMANDS:
                yield str(page.relative_to(ROOT)), [word.strip('"') for word in command.split()]


def locks_of(words: list[str]) -> list[Path]:
    return [ROOT / Path(word).name for option, word in pairwise(words) if option == "-r"]


def pinned(lock: str) -> dict[str, tuple[str, int]]:
    """Name -> version and number of hashes."""
    found: dict[str, tuple[str, int]] = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip()):
        name, version = re.match(r"([\w.-]+)(?:\[.*?\])?==(\S+)", entry).groups()  # type: ignore[union-attr]
        found[canonicalize_name(name)] = version, entry.count("--hash=sha256:")
    return found


COMMANDS = sorted({(page, tuple(words)) for page, words in commands()})


def test_there_are_commands() -> None:
    assert {"docs/howto/deploy/Dockerfile", "docs/howto/run-in-production.md", "docs/howto/oidc.md"} <= {
        page for page, _ in COMMANDS
    }


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_a_documented_command_installs_what_has_hashes(page: str, words: tuple[str, ...]) -> None:
    """From locks alone; or one package from a folder or a wheel, without what it needs. A first try takes a wheel."""
    rest = [word for word in words[2:] if word not in ("-q", "--no-cache-dir")]
    locks = locks_of(rest)
    if page in FIRST_TRIES and RELEASED.fullmatch(rest[0]) and rest[1:] in ([], ["pytest"]):
        return
    if locks:
        assert "--require-hashes" in rest
        assert len(rest) == 1 + 2 * len(locks), f"{rest} has more than locks"
        assert all(lock.exists() for lock in locks), locks
    else:
        assert "--no-deps" in rest, f"{page}: {' '.join(words)}"
        assert "--no-build-isolation" in rest or rest[-1].endswith(".whl"), "pip would fetch what builds it"
        package = [word for word in rest if not word.startswith("-") and word != "dist"]
        assert len(package) == 1 and "[" not in package[0], package


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_has_what_its_extras_need_with_hashes(lock: str) -> None:
    have = pinned(lock)
    assert all(hashes for _, hashes in have.values())
    optional = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *(need for extra in EXTRAS[lock] for need in optional[extra])]:
        need = Requirement(text)
        version, _ = have[canonicalize_name(need.name)]
        assert need.specifier.contains(version, prereleases=True), (need.name, version)


def test_every_extra_is_in_a_lock_and_what_is_installed_was_tested() -> None:
    assert set().union(*EXTRAS.values()) == set(PROJECT["optional-dependencies"])
    tested = pinned("requirements-dev.lock")
    for lock in ("requirements.lock", "requirements-extras.lock"):
        assert {name: version for name, (version, _) in pinned(lock).items()}.items() <= {
            name: version for name, (version, _) in tested.items()
        }.items()
