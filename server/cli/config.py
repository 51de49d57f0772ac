"""`weft config`: the settings with which a server would start here."""

from __future__ import annotations

import os

import click

from server.cli.common import BAD_ARGUMENTS, OK, counted, show


@click.command()
@click.option("--host", help="As of `weft serve`.")
@click.option("--port", help="As of `weft serve`.")
@click.option("--db", help="As of `weft serve`.")
@click.option("--behind-proxy", metavar="ADDRESSES", help="As of `weft serve`.")
@click.option("--read-only", is_flag=True, help="As of `weft serve`.")
@click.option("--all", "all_of_them", is_flag=True, help="Also settings that have their defaults.")
@click.option("--json", "as_json", is_flag=True, help="All settings, as JSON.")
def config(
    host: str | None,
    port: str | None,
    db: str | None,
    behind_proxy: str | None,
    read_only: bool,
    all_of_them: bool,
    as_json: bool,
) -> int:
    """Show the settings in effect here, and where they come from.

    It needs no server and shows no secret. Exit code 4 if `weft serve` would refuse a setting.
    """
    import msgspec

    from server.effective import effective, lines_of

    options = {"WEFT_HOST": host, "WEFT_PORT": port, "WEFT_DB": db, "WEFT_DATA": None if db is None else ""}
    options["WEFT_BEHIND_PROXY"] = behind_proxy
    options["WEFT_READ_ONLY"] = "true" if read_only else None
    found = effective(os.environ, {name: value for name, value in options.items() if value is not None})
    show(msgspec.to_builtins(found), as_json, lines_of(found, all_of_them=all_of_them))
    wrong = sum(one.problem is not None for one in found)
    if wrong:
        click.echo(f"{counted(wrong, 'problem')}: a server would not start with these settings.", err=True)
    return BAD_ARGUMENTS if wrong else OK


COMMANDS = (config,)
