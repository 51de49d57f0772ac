"""biome over web/: `make lint`, and with `--write` `make format`. It is fetched once, from the lock in web/lint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.node import find_node

WEB = Path(__file__).parents[2] / "web"
LINT = WEB / "lint"
BIOME = LINT / "node_modules" / "@biomejs" / "biome"


def is_installed() -> bool:
    """The version that web/lint/package.json names is there."""
    package = BIOME / "package.json"
    wanted = json.loads((LINT / "package.json").read_text(encoding="utf-8"))["devDependencies"]["@biomejs/biome"]
    return package.is_file() and json.loads(package.read_text(encoding="utf-8"))["version"] == wanted


def main(arguments: list[str]) -> int:
    node, npm = find_node()
    env = {**os.environ, "PATH": os.pathsep.join((str(Path(node).parent), os.environ.get("PATH", "")))}
    if not is_installed():
        subprocess.run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=LINT, env=env, check=True)
    command = [node, str(BIOME / "bin" / "biome"), "check", "--error-on-warnings", *arguments, "."]
    return subprocess.run(command, cwd=WEB, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
