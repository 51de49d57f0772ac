"""The wheel of weft-client: the clients of the HTTP API without the engine, from the same files as `weft.Client`.

The modules of `server/client` become the package `weft_client`, with the files `SHARED` in it. Version, Pythons and the
bounds of what it needs are those of pyproject.toml. `make release` builds it; it lies beside weft in an environment.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
NAME: Final = "weft-client"
SHARED: Final = (Path("server/reach.py"), Path("executor/live.py"))
NEEDS: Final = ("httpx", "msgspec")
README: Final = """# weft-client

The clients of a weft server: `Client`, and `AsyncClient` for asyncio.

    from weft_client import Client

    with Client("https://weft.example.com", token) as client:
        run = client.run("expense-approval", {"amount": 120})
"""


def build(out: Path) -> Path:
    """Write the wheel into a folder. Returns its path."""
    with TemporaryDirectory(prefix="weft-client-") as name:
        root = Path(name)
        package = root / "weft_client"
        package.mkdir()
        for file in sorted((ROOT / "server" / "client").glob("*.py")):
            (package / file.name).write_text(_named(file.read_text(encoding="utf-8")), encoding="utf-8")
        for shared in SHARED:
            (package / shared.name).write_text((ROOT / shared).read_text(encoding="utf-8"), encoding="utf-8")
        (package / "py.typed").touch()
        (root / "LICENSE").write_bytes((ROOT / "LICENSE").read_bytes())
        (root / "README.md").write_text(README, encoding="utf-8")
        (root / "pyproject.toml").write_text(_project(), encoding="utf-8")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out.resolve())]
        subprocess.run(command, cwd=root, check=True)
    (wheel,) = out.glob("weft_client-*.whl")
    return wheel


def _named(text: str) -> str:
    """Return the text of a module with the names that modules have in the package."""
    for shared in SHARED:
        text = text.replace(".".join(shared.with_suffix("").parts), f"weft_client.{shared.stem}")
    return text.replace("server.client", "weft_client")


def _project() -> str:
    """Return its pyproject.toml."""
    weft: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [each for each in weft["dependencies"] if re.split(r"[^\w-]", each)[0] in NEEDS]
    assert len(needs) == len(NEEDS)
    project = {
        "name": NAME,
        "version": weft["version"],
        "description": "Clients of a weft server: runs, answers, events and files",
        "readme": "README.md",
        "requires-python": weft["requires-python"],
        "license": weft["license"],
        "license-files": ["LICENSE"],
        "classifiers": weft["classifiers"],
        "dependencies": needs,
    }
    rows = "\n".join(f"{name} = {_toml(value)}" for name, value in project.items())
    return (
        '[build-system]\nrequires = ["hatchling>=1.27"]\nbuild-backend = "hatchling.build"\n\n'
        f'[project]\n{rows}\n\n[tool.hatch.build.targets.wheel]\npackages = ["weft_client"]\n'
    )


def _toml(value: str | list[str]) -> str:
    """Return plain text, or a list of it, as TOML: its syntax is that of JSON there."""
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
