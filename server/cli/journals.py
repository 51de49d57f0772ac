"""`weft journals` and `weft replay`: what runs of durable functions have done, against the code of now."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec import to_builtins

from server.cli.common import FAILED, OK, Database, Refused, call, counted, refused_by, show, with_json
from server.cli.reading import load_flow
from server.cli.render import plain

if TYPE_CHECKING:
    from compiler.tracing.durable import DurableFunction
    from executor.service.replay.checking import Checked
    from executor.service.replay.journals import Journal
    from server.client import AsyncClient

LAST_MAX: Final = 1_000
LAST = click.option(
    "--last", type=click.IntRange(1, LAST_MAX), default=500, show_default=True, help="The newest runs only."
)


@click.group()
def journals() -> None:
    """Journals of runs of durable functions, in files for `weft replay`."""


@journals.command("export")
@click.option("--workflow", required=True, help="Runs of this workflow.")
@click.option("--open", "only_open", is_flag=True, help="Only runs that have not ended.")
@LAST
@click.option("-o", "--to", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--strip", metavar="FIELD,…", default="", help="Empty the fields with these names, such as email,name.")
@click.pass_obj
def export(url: str, workflow: str, only_open: bool, last: int, target: Path, strip: str) -> None:
    """Write the journals of runs to FILE.

    Secrets are not in journals. --strip empties personal data: then calls are compared by their names alone. A run is
    written up to the first output over 64 KiB.
    """
    from executor.service.replay.journals import save

    found = _read(url, workflow, last, only_open)
    if not found:
        runs = "open run" if only_open else "run"
        raise Refused(f"'{plain(workflow)}' has no {runs} of a durable function that has begun.")
    try:
        save(target, found, [name.strip() for name in strip.split(",") if name.strip()])
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror or error}.") from None
    click.echo(f"{counted(len(found), 'run')} in {target}")


@journals.command("marks")
@click.option("--workflow", required=True, help="Runs of this workflow.")
@LAST
@with_json
def marks(url: str, workflow: str, last: int, as_json: bool) -> None:
    """Count the open runs that have each mark of weft.patched.

    When all open runs have a mark, the old way can be deleted; when none has it, the call of weft.patched.
    """
    from executor.service.replay.journals import marks_of

    found = _read(url, workflow, last, only_open=True)
    counts = Counter(name for one in found for name in marks_of(one))
    rows = [{"mark": name, "with": n, "without": len(found) - n} for name, n in sorted(counts.items())]
    lines = [plain(f"{row['mark']}  {row['with']} with, {row['without']} without") for row in rows]
    show(rows, as_json, lines, f"None of {counted(len(found), 'open run')} has a mark.")


@click.command()
@click.argument("flow", metavar="FLOW")
@click.option(
    "--all",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file of `weft journals export`. Default: the open runs of the server.",
)
@click.option(
    "--from",
    "database",
    type=Database(),
    metavar="DATABASE",
    help="The newest runs in a SQLite file or at a PostgreSQL address, which is only read.",
)
@LAST
@with_json
def replay(url: str, flow: str, file: Path | None, database: Path | str | None, last: int, as_json: bool) -> int:
    """Compare the durable functions in FLOW, a Python file, with recorded runs.

    Each is entered with the journal of each of its runs: it makes its calls again, and gets the recorded results, also
    those of what undid them. Nothing is executed, and nothing is changed. Exit code 1 if a run and the code part.
    """
    from compiler.tracing.durable import durables_of
    from executor.errors import WeftError
    from server.dev.journals import HINT, OPEN

    if file is not None and database is not None:
        raise Refused("Only one of --all and --from can be given.")
    sys.path.insert(0, str(Path(flow).resolve().parent))
    durables = {one.name: one for one in durables_of(vars(load_flow(flow)).values()).values()}
    if not durables:
        raise Refused(f"{flow} has no durable function.")
    try:
        found = _recorded(url, list(durables), file, database, last)
    except WeftError as error:
        raise refused_by(error) from None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror or error}.") from None
    checked = asyncio.run(_all(durables, found))
    width = max((len(one.workflow) for one in found), default=0)
    lines = [
        f"{one.run}  {plain(journal.workflow):<{width}}  {_result(one)}"
        for one, journal in zip(checked, found, strict=True)
    ]
    show([to_builtins(one) for one in checked], as_json, lines, "There is no run of these functions.")
    parted = sum(1 for one in checked if one.parts)
    if not as_json and checked:
        click.echo(f"{counted(len(checked), 'run')}, {parted} part from the code.", err=True)
        if any(one.parts and one.status in OPEN for one in checked):
            click.echo(HINT, err=True)
    return FAILED if parted else OK


def _result(one: Checked) -> str:
    if one.parts:
        return click.style("parts ", fg="red") + plain(one.parts)
    if one.left_out:
        return click.style("fits  ", fg="green") + f"without its last {counted(one.left_out, 'event')}"
    return click.style("fits  ", fg="green") + (plain(f"waits at {', '.join(one.waits)}") if one.waits else one.status)


def _recorded(
    url: str, names: Sequence[str], file: Path | None, database: Path | str | None, last: int
) -> list[Journal]:
    if file is not None:
        from executor.service.replay.journals import load

        return load(file)
    if database is None:
        return [one for name in names for one in _read(url, name, last, True)]
    from server.dev.stored import stored_journals

    if isinstance(database, Path) and not database.is_file():
        raise Refused(f"There is no database {database}.")
    return asyncio.run(stored_journals(database, names, last))


def _read(url: str, workflow: str, last: int, only_open: bool) -> list[Journal]:
    from server.dev.journals import last_journals, open_journals

    async def ask(client: AsyncClient) -> list[Journal]:
        return await (open_journals if only_open else last_journals)(client, workflow, last)

    return call(url, ask)


async def _all(durables: dict[str, DurableFunction[..., object]], found: list[Journal]) -> list[Checked]:
    from server.dev.fit import checked

    return [await checked(durables.get(one.workflow), one) for one in found]
