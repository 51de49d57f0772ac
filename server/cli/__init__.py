"""The `weft` command: start the server, check and draw plans without it, and drive runs through its HTTP API.

Exit codes: 0 done; 1 the run failed, or the document has errors; 2 the run was cancelled; 3 the run waits for an answer
or a signal; 4 the arguments are wrong, or the server refused them; 5 no server answers. Results go to stdout, messages
about them to stderr, so a pipe gets data only. Heavy imports are inside the commands: `weft --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from server.cli import (
    agents,
    connectors,
    copies,
    credentials,
    data,
    documents,
    history,
    inbox,
    people,
    processes,
    promote,
    runs,
    top,
    triggers,
    upkeep,
    workflows,
)
from server.cli.common import BAD_ARGUMENTS, OK, Refused
from server.variables import DEFAULT_URL, server_url

TOPICS = (
    agents, connectors, copies, credentials, data, documents, history, inbox, people, processes, promote, runs, top,
    triggers, upkeep, workflows,
)  # fmt: skip
# The layout of `weft --help`: commands by purpose, in the order in which a newcomer needs them.
SECTIONS = {
    "Make workflows": "validate import plan deploy run workflows get activate promote connector new-block",
    "Watch runs": "runs top events trace why state diff usage",
    "Answer them": "inbox answer withdraw signal signals",
    "Stop, repair and delete": "cancel retry fork migrate delete",
    "Start runs automatically": "cron hooks",
    "Run the server": (
        "serve dev worker config demo dev-model link user token audit secret memory connection doctor backup restore "
        "migrate-store gc cache sql export signing-key python"
    ),
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. Wrong arguments exit with 4, because 2 means that a run was cancelled."""
    try:
        code = weft.main(arguments, prog_name="weft", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = OK
    except click.ClickException as error:
        error.show()
        code = error.code if isinstance(error, Refused) else BAD_ARGUMENTS
    except click.Abort:
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: `weft events … | head`
        code = OK
    sys.exit(code if isinstance(code, int) else OK)


class Sections(click.Group):
    """A group whose help lists its commands under the headings of SECTIONS; each must be in one of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Return the exit code of a command; OK for one that returns nothing."""
        code = super().invoke(ctx)
        return OK if code is None else code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        limit = formatter.width - 6 - width
        for title, names in SECTIONS.items():
            rows = [(name.ljust(width), self.commands[name].get_short_help_str(limit)) for name in names.split()]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", help=f"The server to talk to (WEFT_URL, else the port WEFT_PORT here, else {DEFAULT_URL}).")
@click.version_option(package_name="weft", message="weft %(version)s")
@click.pass_context
def weft(ctx: click.Context, url: str | None) -> None:
    """Run workflows that people draw: durably, with approvals, and with every step on record.

    `weft serve` starts the server. Commands find its token by themselves where it runs; elsewhere set WEFT_TOKEN.
    """
    ctx.obj = url or server_url(os.environ)
    if os.environ.get("NO_COLOR"):
        ctx.color = False


for _topic in TOPICS:
    for _command in _topic.COMMANDS:
        weft.add_command(_command)
