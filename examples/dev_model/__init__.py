"""`weft dev-model`: a server of language models that has none. It speaks the wire formats of OpenAI (chat completions)
and Anthropic (messages), and answers from a script, for tests and for people without a key. `script` decides what is
answered, `openai` and `anthropic` read and write the formats, `app` serves them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from server.reach import SettingsError

GRACE_S: Final = 5


@contextmanager
def running() -> Iterator[str]:
    """Yield its address. It ends with the block, and with this process however that ends. Raises
    SettingsError: it ended before it listened; its message is on stderr."""
    command = [sys.executable, "-m", "server", "dev-model", "--port", "0", "--until-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("dev-model: "):
                raise SettingsError("the scripted model (weft dev-model) did not start")
            yield line.removeprefix("dev-model: ").strip()
        finally:
            process.stdin.close()
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
