"""Everything that is published with a version: `make release`.

    build/release/weft-VERSION-py3-none-any.whl   with the editor and the examples in it
    build/release/weft-VERSION.tar.gz             the sources
    build/release/weft_client-VERSION-py3-none-any.whl   the clients alone
    build/release/weft-VERSION-image.tar.gz       the build context of the image: Dockerfile, wheel, locks
    build/release/sbom.cdx.json, third-party-licenses.md
    build/release/SHA256SUMS                      of all of these

It refuses a tree with changes, versions that differ and a changelog without the date of the version. `--dry-run`
builds the same and only prints what it would refuse. It sets no tag: the command for that is the last line printed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Final

from docs import client_wheel, sbom

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "build" / "release"
DOCKERFILE: Final = "docs/howto/deploy/Dockerfile"
SUMS: Final = "SHA256SUMS"


def version() -> str:
    """The version of `pyproject.toml`, where it stands once."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def problems(changelog: str, client: str, changed: str) -> list[str]:
    """Return the reasons that forbid a release.

    changelog: the text of CHANGELOG.md; client: the package.json of the TypeScript client; changed: what
    `git status --porcelain` prints.
    """
    found = []
    heading = re.search(rf"(?m)^## {re.escape(version())}(.*)$", changelog)
    if heading is None:
        found.append(f"CHANGELOG.md has no section {version()}")
    elif not re.fullmatch(r", \d{4}-\d\d-\d\d", heading[1]):
        found.append(f"CHANGELOG.md: `## {version()}{heading[1]}` needs its date, `## {version()}, YYYY-MM-DD`")
    if (other := json.loads(client)["version"]) != version():
        found.append(f"web/client/package.json has version {other}, pyproject.toml {version()}")
    if changed.strip():
        found.append(f"the tree has changes that are not committed:\n{changed.rstrip()}")
    return found


def build(out: Path) -> list[Path]:
    """Write all files of a release into an empty folder. Returns them; the last one has the sums of the others."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True)
    (wheel,) = out.glob("*.whl")
    client_wheel.build(out)
    image = out / f"weft-{version()}-image.tar.gz"
    with tarfile.open(image, "w:gz") as archive:
        archive.add(ROOT / DOCKERFILE, DOCKERFILE)
        archive.add(ROOT / "requirements-extras.lock", "requirements-extras.lock")
        archive.add(wheel, f"dist/{wheel.name}")
    if (code := sbom.main(out)) != 0:
        raise SystemExit(code)
    files = sorted(path for path in out.iterdir() if path.name != SUMS and not path.name.startswith("."))
    sums = out / SUMS
    sums.write_text("".join(f"{_sha256(path)}  {path.name}\n" for path in files), encoding="ascii")
    return [*files, sums]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(dry_run: bool) -> int:
    """Check, build, and print what to do next. Returns the exit code."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    client = (ROOT / "web" / "client" / "package.json").read_text(encoding="utf-8")
    found = problems(changelog, client, status.stdout)
    for problem in found:
        print(f"{'a release would be refused' if dry_run else 'refused'}: {problem}", file=sys.stderr)
    if found and not dry_run:
        return 1
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for path in build(OUT):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    print(f"next: git tag -s v{version()} -m 'weft {version()}' && git push origin v{version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main("--dry-run" in sys.argv[1:]))
