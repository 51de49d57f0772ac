"""Virtual environments with packages of an index, for tests of what is released."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.server import ROOT

INSTALL_S = 400
# A durable function and a drawn one. Prints what each charges.
PROGRAM = """
import asyncio

import weft

@weft.step
def charge(amount: float) -> str:
    return f"charged {amount:g}"

@weft.durable
async def order(amount: float) -> str:
    await weft.sleep(seconds=0.01)
    return await charge(amount)

@weft.workflow
async def drawn(amount: float) -> str:
    return await weft.when(amount > 100, lambda: charge(amount), lambda: "small")

async def main():
    async with weft.open("runs.db", workflows=[order, drawn]) as engine:
        for flow in (order, drawn):
            print((await engine.run(flow, {"amount": 120})).output)

if __name__ == "__main__":
    asyncio.run(main())
"""


def installed(folder: Path, *installs: list[str], python: str = sys.executable) -> Path:
    """Return the folder with the programs of a new virtual environment, after these calls of `pip install`."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    # Not guarded as servers are: the packages come from an index.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (*(["install", "-q", *each] for each in installs), ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), *words], env=environ,
            capture_output=True, text=True, check=False, timeout=INSTALL_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def unhashed(folder: Path) -> str:
    """Return a file of constraints with the versions of the lock."""
    file = folder / "constraints.txt"
    locked = re.findall(r"(?m)^([\w.-]+)(?:\[.*?\])?(==.+?) \\$", (ROOT / "requirements.lock").read_text())
    file.write_text("\n".join(map("".join, locked)))
    return str(file)
