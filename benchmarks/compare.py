"""`--compare peers`: other systems as further programs of the sequences W1 to W5.

They are not dependencies of weft. `make peers` installs them, as `requirements-peers.lock` pins them, in a folder of
their own, `.venv-peers`; an interpreter that has the extra `peers` of `pyproject.toml` is used as well.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchmarks.sample import ROOT, Program
from benchmarks.sequence import Sampled
from benchmarks.statistics import Target

PEERS = {"LangGraph, SQLite": "langgraph_sqlite", "DBOS, SQLite": "dbos_sqlite"}
PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "dbos")
# How many times more the others should need.
TARGETS = {
    "chain": Target(3, least=True),
    "fan": Target(10, least=True),
    "loop": Target(10, least=True),
    "runs": Target(10, least=True),
    "resume": Target(10, least=True),
}
OWN = ROOT / ".venv-peers" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
HOW = """\
{missing} not installed for {python}. Install what requirements-peers.lock pins:

    make peers

or, without make, in an environment of its own:

    python3 -m venv .venv-peers
    .venv-peers/bin/python -m pip install --require-hashes -r requirements-peers.lock"""
VERSIONS = """\
from importlib.metadata import PackageNotFoundError, version
import sys
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass"""


class NotInstalled(Exception):
    """The text says how to install them."""


def interpreter() -> Path:
    """Not resolved: a link to an interpreter is what makes an environment."""
    return OWN if OWN.exists() else Path(sys.executable)


def versions(python: Path) -> dict[str, str]:
    """Of each package of the others. Raises NotInstalled."""
    command = [str(python), "-c", VERSIONS, *PACKAGES]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = dict(line.split() for line in lines)
    missing = [name for name in PACKAGES if name not in found]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise NotInstalled(HOW.format(missing=f"{', '.join(missing)} {verb}", python=python))
    return found


def beside(benchmarks: Mapping[str, Sequence[Sampled]], python: Path) -> dict[str, list[Sampled]]:
    """The durable benchmarks that others run too, with these in their sequence."""
    return {
        section: [
            replace(
                one,
                others={
                    name: Program(f"benchmarks.peers.{module}:{section}", python=str(python))
                    for name, module in PEERS.items()
                },
                others_target=target,
            )
            for one in benchmarks[section]
        ]
        for section, target in TARGETS.items()
    }
