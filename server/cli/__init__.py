"""The `weft` command: start the server, check and draw plans without it, and drive runs through its HTTP API.

Exit codes: 0 done; 1 the run failed, or the document has errors; 2 the run was cancelled; 3 the run waits for an answer
or a signal; 4 the arguments are wrong, or the server refused them; 5 no server answers. Results go to stdout, messages
about them to stderr, so a pipe gets data only. A command imports its own module alone, and `weft --help` none of them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Commands by purpose, in the order in which a newcomer needs them: module and function, and the first sentence of its
# docstring.

SECTIONS = {
    "Make workflows": """
        documents.validate       Check the workflow in FILE (- for stdin).
        documents.import_        Convert FILE (- for stdin), exported from n8n or Sim, to weft/1.
        setup.setup              Do what is left before a workflow runs, one by one.
        documents.plan           Show the plan that a workflow is compiled to.
        workflows.deploy         Store the workflow in FILE as the active version of NAME.
        runs.run                 Run a stored workflow, or the document in a file.
        runs.step                Run BLOCK of a draft alone, or list its pins.
        workflows.workflows      List stored workflows, or the versions of NAME.
        workflows.get            Print the document of NAME as JSON, or as Python.
        workflows.activate       Make VERSION of NAME the active one.
        workflows.rename         Show TITLE in place of the name of a workflow.
        promote.promote          Copy a version of NAME to another server.
        backtests.backtest       Replay recorded runs of NAME with a workflow, and show what would differ.
        backtests.keep           Keep RUN as a test: no age deletes it.
        backtests.kept           List the runs of NAME that are kept as tests.
        debug.test               Print a test of pytest from RUN, of a durable function.
        connectors.connector     Connectors: services that workflows reach by HTTP.
        packages.add             Install connectors and blocks that others have made.
        packages.packages        Packages of connectors and blocks, and signed indexes of them.
        packages.new_connector   Write a repository of a connector NAME.
        documents.new_block      Write a package with a block type NAME, and its tests.
    """,
    "Watch runs": """
        runs.runs                List runs, newest first.
        top.top                  Show running, waiting and queued runs, live.
        runs.events              Print the journal of RUN.
        history.trace            Show where the time of RUN went.
        history.why              Explain the state of RUN's nodes, or of NODE alone.
        history.state            Show the state of RUN after an event.
        history.diff             Show where two runs part, and what came out differently.
        journals.journals        Journals of runs of durable functions, in files for `weft replay`.
        journals.replay          Compare the durable functions in FLOW, a Python file, with recorded runs.
        debug.debug              Replay a run of a durable function in the debugger.
        agents.usage             Show the tokens and costs of models.
    """,
    "Answer them": """
        inbox.inbox              List open waits with their links, oldest first.
        inbox.answer             Answer a wait.
        inbox.withdraw           Take back what RUN asks.
        inbox.signal             Send the signal NAME to RUN.
        inbox.signals            List signals sent to RUN and what received them.
        inbox.update             Send the update NAME to RUN, and print the answer of its durable function as JSON.
        inbox.query              Print the answer of query NAME of RUN as JSON.
    """,
    "Stop, repair and delete": """
        runs.cancel              Cancel RUN and the runs it has started.
        runs.retry               Run NODE of RUN again, and what follows it.
        runs.rerun               Start RUN again, or continue it with another version.
        runs.fork                Start a new run from an event of RUN.
        runs.migrate             Move the open run RUN to another version of its workflow.
        workflows.delete         Delete a run or a workflow.
    """,
    "Start runs automatically": """
        triggers.cron            Schedules: runs that the clock starts.
        triggers.hooks           Webhooks: runs that requests of other systems start.
    """,
    "Run the server": """
        processes.serve          Start the server and resume the runs that were open.
        processes.dev            Serve the workflows in a Python file, again on each save.
        processes.worker         Execute runs, without a web server.
        processes.config         Show the settings in effect here, and where they come from.
        processes.demo           Show a fleet that shares its work while parts are killed.
        processes.dev_model      Serve a language model that answers from a script.
        processes.link           Print a link that signs a browser in.
        people.user              People who use the server.
        people.token             Print the server's token, or manage tokens of programs.
        people.audit             List changes and who made them, newest first.
        credentials.secret       Secrets: values that workflows read as ${NAME}.
        agents.memory            The memory of agents between runs.
        knowledge.knowledge      Knowledge: collections of documents that workflows search.
        credentials.connection   Connections: credentials that blocks use by name.
        upkeep.doctor            Check a database: does it hold what weft promises?
        copies.backup            Copy the database to FILE, while the server works or not.
        copies.restore           Make FILE, a backup, the database.
        copies.migrate_store     Copy a database from SQLite to PostgreSQL, or back.
        upkeep.gc                Delete old runs, and data that only they used.
        upkeep.cache             Manage cached results of blocks.
        data.sql                 Ask the database with one SQL statement (- for stdin).
        data.export              Write outputs of a workflow's blocks as CSV or SQLite.
        inbox.signing_key        Print the key that signs outgoing webhooks.
        documents.python         Build the Python of function blocks (extra `python`).
    """,
}

IMPORTED = 200_000  # objects, more than imports make: to search these for garbage would be a tenth of the start


def _row(line: str) -> tuple[str, str, str]:
    """Return the name of a command, its place, and its summary."""
    place, summary = line.split(maxsplit=1)
    return place.partition(".")[2].rstrip("_").replace("_", "-"), place, summary


LISTED = {title: [_row(line) for line in rows.strip().splitlines()] for title, rows in SECTIONS.items()}
_PLACES = {name: place for rows in LISTED.values() for name, place, _ in rows}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. Wrong arguments exit with 4, because 2 means that a run was cancelled."""
    thresholds = gc.get_threshold()
    gc.set_threshold(IMPORTED)
    # httpx does without its own command, which is half of its import.
    sys.modules.setdefault("httpx._main", cast(Any, None))
    try:
        code = weft.main(arguments, prog_name="weft", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 0
    except click.ClickException as error:
        from server.cli.common import BAD_ARGUMENTS, Refused  # not for help

        error.show()
        code = error.code if isinstance(error, Refused) else BAD_ARGUMENTS
    except click.Abort:
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: `weft events … | head`
        code = 0
    finally:
        gc.set_threshold(*thresholds)
    sys.exit(code if isinstance(code, int) else 0)


class Commands(Mapping[str, click.Command]):
    """The commands by name. The module of one is imported when it is read."""

    def __getitem__(self, name: str) -> click.Command:
        topic, _, function = _PLACES[name].partition(".")
        command = getattr(import_module(f"server.cli.{topic}"), function)
        assert isinstance(command, click.Command), f"{topic}.{function} is not a command"
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class Sections(click.Group):
    """A group whose help lists its commands under the headings of SECTIONS, and loads none of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Return the exit code of a command; 0 for one that returns nothing."""
        code = super().invoke(ctx)
        return 0 if code is None else code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _PLACES))
        for title, rows in LISTED.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, _, summary in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so. Click would load each command, to see whether it is hidden."""
        from click.shell_completion import CompletionItem  # not for help

        rows = (row for rows in LISTED.values() for row in rows)
        found = [CompletionItem(name, help=summary) for name, _, summary in rows if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Sections,
    commands=Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--url", help="The server to talk to (WEFT_URL, else the port WEFT_PORT here, else http://127.0.0.1:8765)."
)
@click.version_option(package_name="weft", message="weft %(version)s")
@click.pass_context
def weft(ctx: click.Context, url: str | None) -> None:
    """Run workflows that people draw: durably, with approvals, and with every step on record.

    `weft serve` starts the server. Commands find its token by themselves where it runs; elsewhere set WEFT_TOKEN.
    """
    from server.reach import server_url  # not for help

    ctx.obj = url or server_url(os.environ)
    if os.environ.get("NO_COLOR"):
        ctx.color = False
