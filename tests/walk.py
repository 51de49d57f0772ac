"""The files that a submission enters, from the route to the first call of a block: traced, not typed.

python -m tests.walk            how many files and lines, by room
python -m tests.walk --files    and the files, in the order in which they are entered
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx

from server.app import build_engine, create_app
from server.settings import Settings

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = tuple(f"{ROOT / name}/" for name in ("compiler", "executor", "server", "weft"))
# Nothing listens there: the walk ends where the block begins.
FLOW: Final = {
    "format": "weft/1",
    "name": "walk",
    "blocks": {"start": {"type": "start"}, "call": {"type": "http", "params": {"url": "http://127.0.0.1:9/"}}},
    "edges": [{"source": "start", "target": "call"}],
}
FILES_MAX: Final = 68  # some are entered by tasks in the background, or not
LINES_MAX: Final = 14_600  # `http/exchanges`, of 430 lines, is entered when the first run is freed meanwhile


class Walk:
    """Records the files of weft that any thread enters between `begin` and the first call of the block."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.reached = threading.Event()
        self._recording = False

    def begin(self) -> None:
        self._recording = True

    def enter(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function of the interpreter."""
        if not self._recording or event != "call":
            return
        name = frame.f_code.co_filename
        if name.startswith(PACKAGES):
            self.files[name.removeprefix(f"{ROOT}/")] = None
            if name.endswith("/blocks/types/http.py") and frame.f_code.co_name == "block":
                self._recording = False
                self.reached.set()


async def _submit(walk: Walk, place: Path) -> None:
    settings = Settings(secret_key="a secret for tests only", token="the-token", db_path=str(place / "weft.db"))
    engine = await build_engine(settings)
    transport = httpx.ASGITransport(app=create_app(settings, engine))
    headers = {"authorization": "Bearer the-token"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", headers=headers) as client:
        try:
            body = {"document": FLOW}
            (await client.post("/api/runs?wait=30", json=body)).raise_for_status()  # compiles, and loads what is lazy
            walk.begin()
            (await client.post("/api/runs?wait=30", json=body)).raise_for_status()
        finally:
            await engine.close()
    if not walk.reached.is_set():
        raise SystemExit("the block was not called")


def trace() -> list[str]:
    """The files of one submission whose plan is cached, relative to the checkout, in the order of the first call."""
    walk = Walk()
    threading.setprofile(walk.enter)
    sys.setprofile(walk.enter)
    try:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(_submit(walk, Path(place)))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(walk.files)


def lines(file: str) -> int:
    return (ROOT / file).read_text(encoding="utf-8").count("\n")


def main() -> None:
    files = trace()
    total = sum(map(lines, files))
    for room, count in Counter("/".join(file.split("/")[:2]) for file in files).most_common():
        print(f"{count:4} {room}")
    if "--files" in sys.argv:
        print(*files, sep="\n")
    print(f"a submission enters {len(files)} files of {total:,} lines (at most {FILES_MAX} and {LINES_MAX:,})")
    sys.exit(len(files) > FILES_MAX or total > LINES_MAX)


if __name__ == "__main__":
    main()
