"""What weft installs and bundles, for those who check licenses and known weaknesses: `make sbom`.

    build/sbom.cdx.json             CycloneDX 1.6: every package of requirements.lock and every npm package that the
                                    editor is built from: versions, hashes, licenses, and what needs what in Python
    build/third-party-licenses.md   the Python packages with the texts of their licenses; those of the editor are in
                                    the wheel, server/_web/third-party-licenses.md

A license is what the installed package says of itself. Packages of the lock that this machine does not install (those
for another system or another Python) are listed with the license `unknown`.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from base64 import b64decode
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SBOM, LICENSES = "sbom.cdx.json", "third-party-licenses.md"
UNKNOWN = "unknown"
EXTRAS = ("server", "llm")  # those that requirements.lock has
_LOCKED = re.compile(r"(?m)^([\w.-]+)(?:\[[^\]]*\])?==(\S+)(?: ; (.+?))? \\\n((?:    --hash=.*\n?)+)")
_TEXTS = re.compile(r"(?i)licen[cs]e|copying|notice")


class Package(NamedTuple):
    """`hashes`: sha256 of the files that an index has, or the sha512 of the one of npm. `marker`: where it is
    installed, if not everywhere."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    license: str


def main(folder: Path) -> int:
    """Writes both files. Exit code."""
    python, web = python_packages(), web_packages()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SBOM).write_text(sbom(python, web), encoding="utf-8")
    (folder / LICENSES).write_text(licenses(python), encoding="utf-8")
    unknown = [f"{each.name} {each.version}" for each in python if each.license == UNKNOWN]
    print(f"{folder / SBOM}: {len(python)} Python packages, {len(web)} of npm")
    print(f"{folder / LICENSES}: license unknown of {', '.join(unknown) or 'none'}")
    return 0


def python_packages() -> list[Package]:
    """Those of requirements.lock, in its order. One may have several versions, for different versions of Python."""
    found = []
    for name, version, marker, hashes in _LOCKED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")):
        digests = tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        found.append(Package(name, version, marker, digests, _license(_installed(name, version))))
    return found


def web_packages() -> list[Package]:
    """Those of npm that the editor is built from; what only builds or tests it is not part of it."""
    locked = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    found = []
    for path, entry in locked.items():
        if path and not entry.get("dev"):
            digest = b64decode(entry["integrity"].removeprefix("sha512-")).hex()
            name = path.rpartition("node_modules/")[2]
            found.append(Package(name, entry["version"], "", (digest,), entry.get("license", UNKNOWN)))
    return found


def sbom(python: Iterable[Package], web: Iterable[Package]) -> str:
    """CycloneDX 1.6 as JSON."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    weft = Component(
        type=ComponentType.APPLICATION, name="weft", version=project["version"], bom_ref="weft",
        licenses=[LicenseFactory().make_from_string(project["license"])],
    )  # fmt: skip
    bom = Bom()
    bom.metadata.component = weft
    of_python: dict[tuple[str, str], Component] = {
        (canonicalize_name(each.name), each.version): _component(each, "pypi") for each in python
    }
    of_web = [_component(each, "npm") for each in web]
    for component in (*of_python.values(), *of_web):
        bom.components.add(component)
    asked = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    installed = {name: found for (name, version), found in of_python.items() if _installed(name, version)}
    direct, needs = _needs(asked)
    bom.register_dependency(weft, [*(installed[name] for name in sorted(direct) if name in installed), *of_web])
    for name in sorted(needs.keys() & installed.keys()):
        bom.register_dependency(installed[name], [installed[each] for each in sorted(needs[name] & installed.keys())])
    return str(JsonV1Dot6(bom).output_as_string(indent=2)) + "\n"


def licenses(python: Iterable[Package]) -> str:
    """A section for each package, with the texts that it brings."""
    parts = ["# Licenses\n\nThe Python packages of requirements.lock and their licenses:\n"]
    for each in python:
        parts.append(f"## {each.name} - {each.version} ({each.license})\n")
        texts = [text.strip() for text in _texts(_installed(each.name, each.version))]
        why = (
            f"It is installed only where {each.marker}" if each.license == UNKNOWN else "The package has no text of it"
        )
        parts += [f"{text}\n" for text in texts] or [f"{why}.\n"]
    return "\n".join(parts)


def _component(package: Package, kind: str) -> Component:
    space, _, name = package.name.rpartition("/")
    purl = PackageURL(kind, space or None, name, package.version)
    of = HashAlgorithm.SHA_256 if kind == "pypi" else HashAlgorithm.SHA_512
    return Component(
        type=ComponentType.LIBRARY, name=name, group=space or None, version=package.version, purl=purl,
        bom_ref=purl.to_string(),
        licenses=[LicenseFactory().make_from_string(package.license)],
        # An index has several files of a version: `hashes` of a component would be those of one file.
        hashes=[HashType(alg=of, content=package.hashes[0])] if len(package.hashes) == 1 else [],
        properties=[
            *([Property(name="weft:marker", value=package.marker)] if package.marker else []),
            *(Property(name="weft:sha256", value=each) for each in package.hashes if len(package.hashes) > 1),
        ],
    )  # fmt: skip


def _needs(asked: Iterable[str]) -> tuple[set[str], dict[str, set[str]]]:
    """The names that `asked` asks for, and for each package behind them what it needs here, by names."""
    needs: dict[str, set[str]] = {}
    queue = [Requirement(each) for each in asked]
    direct: set[str] = {canonicalize_name(each.name) for each in queue}
    done: set[tuple[str, str]] = set()
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        extras = {"", *requirement.extras}
        if all((name, extra) in done for extra in extras):
            continue
        done |= {(name, extra) for extra in extras}
        found = _installed(name)
        wanted = [
            each
            for each in map(Requirement, (found.requires or ()) if found else ())
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
        needs.setdefault(name, set()).update(canonicalize_name(each.name) for each in wanted)
        queue += wanted
    return direct, needs


def _installed(name: str, version: str | None = None) -> Distribution | None:
    """None if it is not installed here, or in another version."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    return found if version in (None, found.version) else None


def _license(package: Distribution | None) -> str:
    """An SPDX expression where the package has one, else how it calls its license."""
    if package is None:
        return UNKNOWN
    about = package.metadata
    fields = [about[field] for field in ("License-Expression", "License") if field in about]
    said = next(filter(None, fields), "")
    kinds = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier", []) if each.startswith("License :: ")]
    # Older packages have the whole text in this field; its title is in the first line.
    return said.strip().partition("\n")[0].strip() or ", ".join(kinds) or UNKNOWN


def _texts(package: Distribution | None) -> Iterator[str]:
    for file in (package.files or ()) if package else ():
        if ".dist-info" in file.parts[0] and _TEXTS.search(file.name):
            yield Path(str(file.locate())).read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main(ROOT / "build"))
