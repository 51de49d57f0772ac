"""`weft debug` and `weft test`: the code of a durable function against a stored run. Nothing is executed."""

from __future__ import annotations

import asyncio
import json
import sys
from bdb import BdbQuit
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import orjson

from server.cli.common import FAILED, OK, Refused, call, counted
from server.cli.reading import load_flow
from server.cli.render import plain, short

if TYPE_CHECKING:
    from compiler.tracing.durable import DurableFunction
    from executor.service.replay.entering import Entered, Replay
    from executor.service.replay.journals import Journal

CALLS_SHOWN: Final = 20  # the last ones


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("file", required=False)
@click.option("--to", "to", type=click.IntRange(1), metavar="EVENT", help="Stop after this event of the journal.")
@click.option("--step", "steps", is_flag=True, help="Stop at the first line.")
@click.pass_obj
def debug(url: str, run_id: str, file: str | None, to: int | None, steps: bool) -> int:
    """Replay a run of a durable function in the debugger.

    FILE has the function; without it, it is found by the name of the function. Its steps are answered from the journal
    of RUN, so nothing is executed. It stops where the journal ends, where the code raises, or at the first call that is
    not that of the journal. Exit code 1 if it makes other calls.
    """
    from server.cli.debugger import Debugger

    journal, durable = _read(url, run_id, file)
    debugger = Debugger()

    def stop(replay: Replay) -> None:
        sys.settrace(None)  # the code does not go on: it is ended where it stands
        _show_calls(replay, journal, Path(durable.function.__code__.co_filename).name)
        why = "The journal ends here." if to is None else f"The code after event {to}:"
        click.echo(plain(why if replay.parted is None else f"{replay.parted.message}"), err=True)
        if replay.refused is not None:
            debugger.look_here()
        elif waiting := [task for _, task in sorted(replay.tasks.items()) if not task.done()]:
            debugger.look_at(waiting[-1])

    click.echo(f"run {run_id} of {plain(journal.workflow)}, {plain(journal.status)}", err=True)
    if steps:
        debugger.set_trace()
    try:
        entered = asyncio.run(_entered(durable, journal, to, stop))
    finally:
        sys.settrace(None)
    if entered.end == "parted":
        return FAILED
    if entered.end == "returned":
        value = json.dumps(entered.value, ensure_ascii=False)
        click.echo(plain(f"{journal.workflow} returned {value}"), err=True)
        if not steps and to is None:
            click.echo("To look at it before its end: --step, or --to EVENT (`weft events` has the numbers).", err=True)
    elif entered.error is not None and not isinstance(entered.error.__cause__, BdbQuit):
        click.echo(plain(f"It raised {entered.error}"), err=True)
        debugger.look_at_error(entered.error)
    return OK


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("file", required=False)
@click.pass_obj
def test(url: str, run_id: str, file: str | None) -> None:
    """Print a test of pytest from RUN, of a durable function.

    It holds the input of the run, its answers and the results of its steps, without secrets. It passes as long as the
    function makes the same calls and comes to the same end. FILE as in `weft debug`.
    """
    from executor.service.replay.checking import check
    from executor.service.replay.journals import write

    journal, durable = _read(url, run_id, file)
    done = asyncio.run(check(durable, journal))
    if done.parts:
        click.echo(f"The code that is here does not do what the run did, so the test fails: {done.parts}", err=True)
    module = sys.modules[durable.function.__module__]
    name = next(name for name, value in vars(module).items() if value is durable)
    recorded = journal.end
    if recorded is None:
        end = "(done.output, done.error) == (None, None)"
    elif recorded.type == "node.failed":
        end = f"done.error == {json.loads(recorded.data or b'{}')['error']['code']!r}"
    else:
        end = f"done.output == {json.loads(recorded.output or b'null')!r}"
    text = write([journal])
    if "'''" in text or text.rstrip().endswith("'"):
        text = text.replace("'", "\\u0027")
    click.echo(
        _TEST.format(run=run_id, workflow=journal.workflow, module=module.__name__, name=name, text=text, end=end)
    )


_TEST: Final = '''\
"""Run {run} of {workflow}, as it was recorded: made by `weft test`."""

from {module} import {name}

from weft import testing

RUN = r\'\'\'
{text}\'\'\'


def test_{name}_does_what_it_did_in_run_{run}() -> None:
    (done,) = testing.replay({name}, RUN)
    assert {end}
'''


def _read(url: str, run_id: str, file: str | None) -> tuple[Journal, DurableFunction[..., Any]]:
    """Return the journal of the run, and the function. Raises Refused."""
    from server.dev.journals import journal_of

    found = call(url, lambda client: journal_of(client, run_id))
    if found is None:
        hint = (
            "`weft why` and `weft state --at` show a drawn workflow; `weft keep` keeps a run of it as a test, which "
            "`weft backtest --kept` plays."
        )
        raise Refused(f"Run {run_id} is not one of a durable function, or has not begun it.", hint)
    journal, called = found
    return journal, _function(called, file)


def _function(called: str, file: str | None) -> DurableFunction[..., Any]:
    """Raises Refused."""
    from compiler.tracing.durable import durables_of
    from executor.blocks.types.durable import by_all_names

    *places, _ = called.split(".")
    own = Path(*places).with_suffix(".py")
    if file is None and not own.is_file():
        raise Refused(f"There is no file {own} here, which has {called}.", "Name it: weft debug RUN flow.py")
    path = own if file is None else Path(file)
    is_own = path.resolve().parts[-len(own.parts) :] == own.parts
    found = by_all_names(durables_of(vars(load_flow(str(path), ".".join(places) if is_own else "")).values()).values())
    if called not in found:
        names = ", ".join(found) or "none"
        raise Refused(f"{path} has no durable function {called!r}.", f"Those of the file: {names}.")
    return found[called]


async def _entered(
    durable: DurableFunction[..., Any], journal: Journal, to: int | None, stop: Callable[[Replay], object]
) -> Entered:
    from executor.errors import WeftError
    from executor.service.replay.entering import enter

    try:
        return await enter(durable, journal, to, stop)
    except WeftError as error:
        raise Refused(error.message, error.hint) from None


def _show_calls(replay: Replay, journal: Journal, file: str) -> None:
    """The calls that the code has made, each with the line: those that are not in the journal are new."""
    from executor.kernel.journal.codec import data_of
    from executor.kernel.run.mismatch import text_of_call

    started: dict[int, dict[str, Any]] = {}
    ended: dict[int, Any] = {}
    for record in journal.records:
        if record.type == "step.started":
            started.setdefault(data_of(record)["n"], data_of(record))
        elif record.type == "step.finished":
            ended[data_of(record)["n"]] = data_of(record).get("error") or orjson.loads(record.output or b"null")
    for n, made in sorted(replay.calls.items())[-CALLS_SHOWN:]:
        known, was = replay.known.get(n), started.get(n, {})
        line = was.get("line") or made.site.line
        state = "is not in the journal" if known is None else "is open"
        if known is not None and known.finished_seq:
            state = f"-> {short(ended.get(n))}"
        text = text_of_call(made.kind, made.name, was["shown"] if was.get("shown") is not None else made.shown)
        click.echo(plain(f"{n:>4}  {f'{file}:{line}' if line else '':<{len(file) + 6}} {text} {state}"), err=True)
    click.echo(f"{counted(len(replay.calls), 'call')}. Nothing is executed.", err=True)
