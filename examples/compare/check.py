"""Runs the five workflows in each system, kills processes with `kill -9` where it hurts, and starts them
again: `python -m examples.compare.check [SYSTEM...]`. It prints what came out, and which calls were made twice.

Nothing leaves this machine: Prefect gets a server of its own on loopback, and tells nothing home.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from examples.compare.outside import calls

ROOT = Path(__file__).parents[2]
SYSTEMS = ("weft", "dbos", "prefect", "langgraph", "hamilton")
EXPECTED = {"chain": 3, "fan": 6, "approval": "published a text", "sleep": "before and after", "branch": "sorry"}
LIMIT_S = 120
# One for all of them: its server needs half a minute to make its database.
HOME = os.environ.get("PREFECT_HOME") or tempfile.mkdtemp(prefix="compare-prefect-")


class Program:
    """One process of one system. `lines`: what it printed."""

    def __init__(self, system: str, name: str, folder: Path, *more: str, hang: str = "") -> None:
        environ = {
            **os.environ,
            "COMPARE_FOLDER": str(folder),
            "COMPARE_HANG": hang,
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": HOME,
            "PREFECT_LOCAL_STORAGE_PATH": str(folder / "results"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
            "PREFECT_LOGGING_LEVEL": "CRITICAL",
            "DO_NOT_TRACK": "1",
            "HAMILTON_TELEMETRY_ENABLED": "false",
            "LANGSMITH_TRACING": "false",
        }
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"examples.compare.in_{system}", name, str(folder), *more],
                cwd=folder,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def result(self) -> str:
        """The last line that it prints; "no result" if it fails or takes too long."""
        try:
            printed, _ = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return "no result"
        return (printed.strip().splitlines() or ["no result"])[-1] if self.process.returncode == 0 else "no result"

    def kill(self) -> None:
        """With the processes that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def until(folder: Path, name: str, number: int = 1) -> bool:
    end = time.monotonic() + LIMIT_S
    while calls(folder, name) < number:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def made(folder: Path) -> dict[str, int]:
    """Calls that were made more than once."""
    counted = {path.stem: path.stat().st_size for path in sorted(folder.glob("*.calls"))}
    return {name: number for name, number in counted.items() if number > 1}


def plain(system: str, name: str, folder: Path) -> str:
    """Without a crash."""
    program = Program(system, name, folder)
    if system == "prefect" and name == "approval":
        until(folder, "draft")
        time.sleep(8)
        Program(system, name, folder, "approve").result()
        return program.result()
    result = program.result()
    return Program(system, name, folder, "approve").result() if result == "waiting" else result


def killed(system: str, name: str, folder: Path) -> str:
    """`chain` in its second step, `approval` while it waits, `sleep` while it sleeps; then the same program again."""
    program = Program(system, name, folder, hang="parse" if name == "chain" else "")
    if not until(folder, {"chain": "parse", "approval": "draft", "sleep": "before"}[name]):
        program.kill()
        return "no result"
    time.sleep(2)
    if program.process.poll() is None:
        program.kill()
    else:
        program.process.communicate()
    return plain(system, name, folder)


def main() -> None:
    for system in sys.argv[1:] or SYSTEMS:
        workflows, rest = lines(system)
        print(f"{system}: {workflows} lines for the workflows, {rest} to run and resume them")
        lacking: set[str] = set()
        for kind, names in ((plain, EXPECTED), (killed, ("chain", "approval", "sleep"))):
            for name in names:
                if name in lacking:
                    continue
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    began = time.monotonic()
                    result = kind(system, name, Path(folder))
                    took_s = time.monotonic() - began
                    lacking |= {name} if result == "cannot" else set()
                    good = result == json.dumps(EXPECTED[name])
                    print(
                        f"  {kind.__name__:7} {name:9} {'as expected' if good else result:12} {took_s:5.1f} s  "
                        f"twice: {made(Path(folder)) or 'nothing'}",
                        flush=True,
                    )
                    if not good and os.environ.get("COMPARE_SHOW"):
                        print((Path(folder) / "log").read_text()[-3000:])


def lines(system: str) -> tuple[int, int]:
    """Return the lines of code for the workflows, and to run and resume them: without blank ones, comments and the
    docstring."""
    text = (Path(__file__).parent / f"in_{system}.py").read_text().split('"""', 2)[2]
    workflows, rest = (
        sum(bool(line.strip()) and not line.strip().startswith("#") for line in part.splitlines())
        for part in text.split("# --- run")
    )
    return workflows, rest


if __name__ == "__main__":
    main()
