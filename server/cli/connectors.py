"""`weft connector`: connector documents, checked and made without a server, and those that were added to a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from msgspec import to_builtins

from server.cli.common import FAILED, OK, Refused, call, show, with_json


@click.group()
def connector() -> None:
    """Connectors: services that workflows reach by HTTP.

    Each is described by a JSON document. `check` and `import` need no server. `add` gives a document to the server,
    which also loads those in the folder WEFT_CONNECTORS when it starts.
    """


@connector.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def check(file: Path, as_json: bool) -> int:
    """Check the connector document in FILE. Exit code 1 when it has errors."""
    from executor.blocks.connectors.validate import read
    from executor.errors import BadRequest

    found: list[dict[str, str]] = []
    try:
        made = read(file.read_bytes())
    except BadRequest as error:
        found = error.extra["errors"]
    else:
        if not as_json:
            click.echo(f"connector.{made.service}: {len(made.operations)} operations")
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for one in found:
            click.echo(f"{one['pointer'] or '/'}: {one['message']} {one['hint']}")
    return FAILED if found else OK


@connector.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--operation", "chosen", multiple=True, metavar="ID", help="Take this operation; may be repeated.")
@click.option("--service", help="Name of the connector. Default: from the title of the description.")
@click.option("--base-url", help="Address of the service. Default: the first server of the description.")
@click.option("--json", "as_json", is_flag=True, help="The list of operations as JSON.")
def import_(file: Path, chosen: tuple[str, ...], service: str | None, base_url: str | None, as_json: bool) -> None:
    """Print a connector document made of an OpenAPI description.

    FILE is an OpenAPI 3 description in JSON (- for stdin). Without --operation, its operations are listed. Nothing is
    downloaded.
    """
    from executor.blocks.connectors import openapi
    from executor.errors import BadRequest, LimitExceeded

    try:
        data = sys.stdin.buffer.read(openapi.BYTES_MAX + 1) if str(file) == "-" else file.read_bytes()
        description = openapi.parse(data)
        if chosen:
            made = openapi.connector(description, chosen, service=service, base_url=base_url)
            click.echo(json.dumps(made, indent=2, ensure_ascii=False))
            return
        offered = openapi.operations(description)
    except (BadRequest, LimitExceeded) as error:
        raise Refused(f"{error}. {error.hint}" if error.hint else str(error)) from None
    width = max((len(one.id) for one in offered), default=0)
    if as_json:
        click.echo(json.dumps([to_builtins(one) for one in offered], indent=2, ensure_ascii=False))
    else:
        for one in offered:
            problem = f"  (not usable: {one.problem})" if one.problem else ""
            click.echo(f"{one.id:<{width}}  {one.method:<6}  {one.path}  {one.title}{problem}")


@connector.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@with_json
def add(url: str, file: Path, as_json: bool) -> None:
    """Add the connector document in FILE (- for stdin) to the server, or replace the one of its service."""
    from executor.blocks.connectors.document import BYTES_MAX
    from executor.blocks.connectors.validate import read
    from executor.errors import BadRequest

    data = sys.stdin.buffer.read(BYTES_MAX + 1) if str(file) == "-" else file.read_bytes()
    try:
        read(data)
    except BadRequest as error:
        lines = [f"{one['pointer'] or '/'}: {one['message']} {one['hint']}" for one in error.extra["errors"]]
        raise Refused("\n".join([f"{error.message}:", *lines])) from None
    made = call(url, lambda client: client.put_connector(json.loads(data)))
    show(made, as_json, [f"{made['type']}: {made['operations']} operations"])


@connector.command(name="list")
@with_json
def list_connectors(url: str, as_json: bool) -> None:
    """List the connectors that were added to the server."""
    found = call(url, lambda client: client.connectors())["connectors"]
    lines = (f"{one['type']}  {one['title']}  {one['operations']} operations" for one in found)
    show(found, as_json, lines, none="No connectors were added. Add one with `weft connector add FILE`.")


@connector.command()
@click.argument("service")
@click.pass_obj
def delete(url: str, service: str) -> None:
    """Delete the connector of SERVICE. Blocks of its type no longer run."""
    call(url, lambda client: client.delete_connector(service))
    click.echo(f"Deleted {service}.", err=True)
