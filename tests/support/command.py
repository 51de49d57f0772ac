"""The `weft` command in the process of the tests: as a user runs it, without the start of a Python process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from click.testing import CliRunner

from server import cli


@dataclass
class Ran:
    """What is left of a command; output is text."""

    returncode: int
    stdout: str
    stderr: str


def weft(*arguments: str, input: str | None = None, environ: Mapping[str, str | None]) -> Ran:
    """Run `weft` to its end. `environ` changes the environment; None removes a variable. One at a time: it has the
    streams of the process meanwhile."""
    with CliRunner(env=environ).isolation(input=input) as (out, err, _):
        try:
            cli.main(list(arguments))
        except SystemExit as ended:
            code = ended.code
        stdout, stderr = out.getvalue().decode(), err.getvalue().decode()
    assert isinstance(code, int), code
    return Ran(code, stdout, stderr)
