"""The child processes of a process in which queries on SQLite files run."""

from __future__ import annotations

from pathlib import Path

COMPUTED = 50  # hundredths of a second
PROGRAM = b"executor.blocks.databases.sqlite_child"


def sql_children(pid: int) -> list[int]:
    """Those of `pid` that have not ended."""
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if _is_one(place, pid)]


def is_alive(pid: int) -> bool:
    return _state(Path(f"/proc/{pid}"))[0] not in ("", "Z")


def is_computing(pid: int) -> bool:
    """It has computed for longer than its start takes: a query runs."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) > COMPUTED


def _is_one(place: Path, parent: int) -> bool:
    state, its_parent = _state(place)
    try:
        return its_parent == str(parent) and state != "Z" and PROGRAM in (place / "cmdline").read_bytes()
    except OSError:
        return False


def _state(place: Path) -> tuple[str, str]:
    """The letter of the state, and the parent."""
    try:
        fields = (place / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[1]
