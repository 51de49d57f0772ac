"""A real server in a process of its own, and the `weft` command against it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import command
from tests.support.command import Ran


class Weft:
    """The command line against a server. `weft("runs")` returns its exit code, stdout and stderr."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *arguments: str, input: str | None = None, url: str | None = None) -> Ran:
        others = dict.fromkeys(name for name in os.environ if name.startswith("WEFT_"))
        return command.weft(*arguments, input=input, environ={**others, "WEFT_URL": url or self.url})


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}


@pytest.fixture(scope="session")
def weft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weft]:
    folder: Path = tmp_path_factory.mktemp("server")
    arguments = ["serve", "--port", "0", "--db", str(folder / "weft.db")]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "server", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**clean_environment(), "WEFT_TOKEN": "off"},
        )
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            log.seek(0)
            assert ready.startswith("weft is ready"), ready + log.read()
            yield Weft(next(word for word in ready.split() if word.startswith("http")).rstrip("/"))
        finally:
            process.terminate()
            try:
                code = process.wait(30)
            finally:
                process.kill()
                process.stdout.close()
    assert code == 0
