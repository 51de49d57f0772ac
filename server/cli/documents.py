"""`weft validate` and `weft plan`: documents, checked and compiled without a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import FAILED, OK, Refused, call, check_variables, counted
from server.cli.reading import is_file, is_python, read_document
from server.cli.render import diagnostic_lines

if TYPE_CHECKING:
    from compiler.plan import Plan
    from compiler.render import Format


@click.command()
@click.argument("file")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def validate(file: str, trigger: str | None, as_json: bool) -> int:
    """Check the workflow in FILE (- for stdin). Exit code 1 when it has errors."""
    _, found = _compile(read_document(file), trigger, _steps_beside(file))
    errors = sum(d["severity"] == "error" for d in found)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in diagnostic_lines(found):
            click.echo(line)
        click.echo(counted(errors, "error") + ", " + counted(len(found) - errors, "warning"), err=True)
    return FAILED if errors else OK


@click.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--version", type=click.IntRange(1), help="Version of a stored workflow. Default: the active one.")
@click.option("--expanded", is_flag=True, help="Show each branch of a parallel whose number of branches is known.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "dot", "mermaid"]), default="text", show_default=True
)
@click.pass_obj
def plan(url: str, workflow: str, trigger: str | None, version: int | None, expanded: bool, form: Format) -> int:
    """Show what a workflow is compiled to.

    One in a file needs no server. Nothing runs.
    """
    if not is_file(workflow):
        drawn = call(
            url,
            lambda client: client.plan(workflow, version=version, trigger=trigger, form=form, expanded=expanded),
        )
        click.echo(json.dumps(json.loads(drawn), indent=2, ensure_ascii=False) if form == "json" else drawn)
        return OK
    from compiler.render import render

    compiled, found = _compile(read_document(workflow), trigger, _steps_beside(workflow))
    if compiled is None:
        for line in diagnostic_lines(found):
            click.echo(line, err=True)
        return FAILED
    click.echo(render(compiled, form, expanded=expanded))
    return OK


def _steps_beside(file: str) -> list[str]:
    """As in WEFT_FUNCTIONS: the Python file of a workflow, if there are steps in it. It has been read."""
    if not is_python(file):
        return []
    from executor.blocks.python_modules import load_module, steps_of

    path = file if file.endswith(".py") else file.rsplit(":", 1)[0]
    return [path] if steps_of(vars(load_module(path)).values()) else []


def _compile(document: Any, trigger: str | None, more: list[str]) -> tuple[Plan | None, list[dict[str, Any]]]:
    """(plan or None, findings as JSON), in this process, without a server. `more`: beside WEFT_FUNCTIONS."""
    import msgspec

    from compiler.compile import compile_document
    from executor.blocks.python import python_blocks
    from executor.blocks.registry import Registry
    from executor.connectors.load import connectors
    from executor.sandbox.sandbox import Sandbox

    check_variables()
    named = [part.strip() for part in os.environ.get("WEFT_FUNCTIONS", "").split(",") if part.strip()]
    named += [one for one in more if one not in named]
    try:
        own = python_blocks(named)
    except ValueError as error:
        raise Refused(f"WEFT_FUNCTIONS: {error}") from None
    folder = os.environ.get("WEFT_CONNECTORS")
    shipped = connectors(Path(folder) if folder else None)
    sandbox = Sandbox()
    try:
        compiled = compile_document(document, Registry.load([*shipped, *own], sandbox=sandbox), trigger=trigger)
    finally:
        sandbox.close()
    return compiled.plan, msgspec.to_builtins(compiled.diagnostics)


COMMANDS = (validate, plan)
