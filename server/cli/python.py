"""`weft python build`: builds the interpreter that runs function blocks in Python."""

from __future__ import annotations

import click

from server.cli.common import Refused


@click.group()
def python() -> None:
    """Build the Python of function blocks (extra `python`)."""


@python.command()
@click.option("--force", is_flag=True, help="Build it even if it is there.")
@click.option("--held", is_flag=True, hidden=True, help="For `weft serve --build-python`, which has the lock.")
def build(force: bool, held: bool) -> None:
    """Build CPython for the sandbox, once on each machine: half a minute and 450 MB of memory.

    It is built from the package componentize-py, of the extra `python`; nothing is downloaded. The result is in
    the cache folder of this user; a server of the same user finds it there, without a restart.
    """
    from executor.blocks.sandbox.python import component
    from executor.errors import SandboxError

    try:
        component.component()
    except SandboxError:
        is_there = False
    else:
        is_there = True
    if is_there and not force:
        click.echo(f"{component.compiled_file()} is there.", err=True)
        return
    with component.building() as is_ours:
        if not (is_ours or held) and component.is_being_built():
            raise Refused("Another process builds it already.", "Wait for half a minute.")
        if not held:
            click.echo("Building. This takes about half a minute.", err=True)
        try:
            click.echo(component.build())
        except component.BuildFailed as error:
            raise Refused(str(error)) from None


COMMANDS = (python,)
