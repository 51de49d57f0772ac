"""`weft backtest`, `keep` and `kept`: a workflow that is tested by its own runs."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct, to_builtins

from server.cli.common import FAILED, OK, Refused, call, counted, show, with_json
from server.cli.reading import read_documents
from server.cli.render import plain

if TYPE_CHECKING:
    from server.client import AsyncClient

LAST_MAX: Final = 1_000
SHOWN: Final = 3  # differences of one run
VALUE: Final = 60  # characters
WORDS: Final = {
    "same": "same",
    "changed": "other values",
    "other_way": "another way",
    "would_call": "would call",
    "failed": "fails",
    "not_replayed": "not replayed",
}
COLORS: Final = {"same": "green", "failed": "red", "would_call": "yellow", "not_replayed": "yellow"}


def evaluates(command: Any) -> Any:
    """Add the options of an evaluation."""
    for option in (
        click.option(
            "--min-score", type=click.FloatRange(0, 1), help="Exit code 1 below it, or if a row has no score."
        ),
        click.option("--criteria", default="", help="By which --judge-model scores."),
        click.option("--judge-model", help="The model that scores by --criteria."),
        click.option("--judge", help="A workflow that returns the score of {input, output, expected}."),
        click.option("--at", default="", help="JSON pointer of the scored value in the output."),
        click.option("--expect", help="What is expected of all rows, instead of the column or the recorded output."),
        click.option(
            "--score", type=click.Choice(["same", "contains", "regex", "judge"]), help="How results are scored."
        ),
        click.option("--dataset", help="Rows of this CSV file instead of recorded runs."),
        click.option("--budget", type=click.FloatRange(0), help="US dollars that --call-models may cost."),
        click.option("--call-models", is_flag=True, help="Call models that are asked for something else."),
        click.option("--model", "models", multiple=True, help="Replay with this model in all blocks. Can be repeated."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("name")
@click.option("--last", type=click.IntRange(1, LAST_MAX), help=f"The last N runs that have ended. Default: {50}.")
@click.option("--kept", is_flag=True, help="The runs that are kept as tests.")
@click.option(
    "--version", "versions", type=click.IntRange(1), multiple=True, help="Replay with this version. Can be repeated."
)
@click.option("--draft", is_flag=True, help="Replay with the draft of NAME that was changed last.")
@click.option("--file", help="Replay with the workflow in this file (- for stdin).")
@evaluates
@with_json
def backtest(url: str, /, name: str, as_json: bool, **given: Any) -> int:
    """Replay recorded runs of NAME with a workflow, and show what would differ.

    Nothing outside is called, but models with --call-models. Exit code 0: all runs do the same, or have --min-score;
    1: one differs, or cannot be replayed. Several versions and models are shown side by side.
    """
    documents: list[tuple[str, dict[str, Any]]] = [(f"version {each}", {"version": each}) for each in given["versions"]]
    if given["draft"]:
        documents.append(("draft", {"draft": call(url, lambda client: _draft_of(client, name))}))
    if given["file"] is not None:
        documents.append(("file", {"document": read_documents(given["file"])[0]}))
    candidates = candidates_of(documents or [("active version", {})], given["models"])
    if given["call_models"] != (given["budget"] is not None):
        raise Refused("--call-models and --budget go together.", "For example: --call-models --budget 0.50")
    rows = None if given["dataset"] is None else read_rows(given["dataset"])
    score = _score_of(given, any(row["expected"] is not None for row in rows or ()))
    last = len(rows) if rows is not None else given["last"] or (LAST_MAX if given["kept"] else 50)
    plain_one = len(candidates) == 1 and not (given["models"] or given["call_models"] or rows or score)
    spent = call(url, lambda client: play(client, name, candidates, rows, given["kept"], last, given["budget"], score))
    if not candidates[0].runs:
        what = "kept run" if given["kept"] else "run that has ended"
        raise Refused(f"There is no {what} of '{name}'.", "`weft runs` lists runs; `weft keep RUN` keeps one.")
    if plain_one:
        return _backtest(candidates[0].runs, as_json)
    _show_candidates(candidates, rows, spent, as_json)
    return exit_code(candidates, given["min_score"])


def _score_of(given: Mapping[str, Any], has_expected: bool) -> dict[str, Any] | None:
    judge = {"workflow": given["judge"], "model": given["judge_model"], "criteria": given["criteria"]}
    by = given["score"] or ("judge" if judge["workflow"] or judge["model"] else None)
    if by is None and not (has_expected or given["expect"] or given["min_score"] is not None):
        return None
    score = {"by": by or "same", "at": given["at"], "expected": given["expect"]}
    return score | {"judge": judge} if by == "judge" else score


def _backtest(runs: list[dict[str, Any]], as_json: bool) -> int:
    counts = Counter(run["result"] for run in runs)
    summary = ", ".join(f"{counts[result]} {word}" for result, word in WORDS.items() if counts[result])
    if as_json:
        click.echo(json.dumps({"counts": {key: counts[key] for key in WORDS}, "runs": runs}, indent=2))
    else:
        show(runs, False, (line for run in runs if run["result"] != "same" for line in _lines(run)))
        click.echo(f"{counted(len(runs), 'run')}: {summary}.")
    return OK if counts["same"] == len(runs) else FAILED


async def _draft_of(client: AsyncClient, name: str) -> str:
    page = await client.drafts()
    for each in page["drafts"]:
        if name in (each["base_name"], each["name"]):
            return each["id"]
    raise Refused(f"There is no draft of '{name}'.", "Open the workflow in the editor, or use --file.")


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    result, way = run["result"], run["way"]
    version = "" if run["version"] is None else f" version {run['version']}"
    word = click.style(f"{WORDS[result]:<12}", fg=COLORS.get(result))
    yield f"{word}  {run['run']}{version}  {plain(run['reason'])}".rstrip()
    if way is not None:
        before, now = (", ".join(way[side]) or "nothing" for side in ("before", "now"))
        yield f"    {way['key']}: {plain(before)} -> {plain(now)}"
    nodes = [node for node in run["differences"] if way is None or node["key"] != way["key"] or node["error"]]
    for node in nodes[:SHOWN]:
        value = node["value"]
        said = [f"would {node['would']}"] if node["would"] else []
        if value is not None:
            said.append(f"{value['pointer']} {_value(value['a'])} -> {_value(value['b'])}".lstrip())
        yield f"    {node['key']}: {plain(', '.join([*said, node['error']] if node['error'] else said))}"
    more = len(nodes) - SHOWN
    if more > 0:
        yield f"    and {counted(more, 'block')} more"


def _value(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= VALUE else f"{text[:VALUE]}…"


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--note", default="", help="What the run tests.")
@click.option("--drop", is_flag=True, help="Keep it no longer.")
@click.pass_obj
def keep(url: str, run_id: str, note: str, drop: bool) -> None:
    """Keep RUN as a test: no age deletes it."""
    if drop:
        dropped = call(url, lambda client: client.drop_kept(run_id))["dropped"]
        click.echo(f"{run_id} is kept no longer." if dropped else f"{run_id} was not kept.")
        return
    kept_run = call(url, lambda client: client.keep(run_id, note))
    click.echo(f"{run_id} is kept as a test of {kept_run['workflow']}.")


@click.command()
@click.argument("name")
@with_json
def kept(url: str, name: str, as_json: bool) -> None:
    """List the runs of NAME that are kept as tests."""
    found = call(url, lambda client: client.kept(name))["kept"]
    lines = (f"{each['run']}  {plain(each['note'])}".rstrip() for each in found)
    show(found, as_json, lines, none="None is kept. Keep one with `weft keep RUN`.")


# --- evaluations: several documents and models on the same rows, side by side ---


PAGE: Final = 50
ROWS_MAX: Final = 1_000
CELL, LABEL = 36, 24  # characters
PIN: Final = "pin."


class Candidate(Struct):
    """A document and a model to play: `what` is their part of the request. The rest sums up its rows."""

    name: str
    what: dict[str, Any]
    runs: list[dict[str, Any]] = []
    score: float | None = None
    scored: int = 0
    cost_usd: float | None = 0.0
    tokens: int = 0
    ms: int = 0

    def add_up(self) -> None:
        used = [run["used"] for run in self.runs]
        scores = [value for run in self.runs if (value := (run["score"] or {}).get("value")) is not None]
        self.score, self.scored = (sum(scores) / len(scores) if scores else None), len(scores)
        costs = [each["cost_usd"] for each in used]
        self.cost_usd = None if None in costs else round(sum(costs), 9)
        self.tokens, self.ms = (sum(each[name] for each in used) for name in ("tokens", "ms"))


def candidates_of(documents: Sequence[tuple[str, dict[str, Any]]], models: Sequence[str]) -> list[Candidate]:
    return [
        Candidate(", ".join(filter(None, (name, model))), what | ({"model": model} if model else {}))
        for name, what in documents
        for model in models or ("",)
    ]


def read_rows(path: str) -> list[dict[str, Any]]:
    """Read the rows of a CSV file. Raises Refused."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            listed = list(csv.DictReader(file, restkey="", restval=""))
    except (OSError, UnicodeError, csv.Error) as error:
        raise Refused(
            f"{path} cannot be read: {error}", "The rows are a CSV file in UTF-8 with a line of names."
        ) from None
    if not 0 < len(listed) <= ROWS_MAX:
        raise Refused(
            f"{path} has {counted(len(listed), 'row')} below the line of names.", f"A file has 1 to {ROWS_MAX:,} rows."
        )
    return [_row(path, number, cells) for number, cells in enumerate(listed, 2)]


def _row(path: str, number: int, cells: Mapping[str, Any]) -> dict[str, Any]:
    if cells.get(""):
        raise Refused(f"{path}, row {number}: it has more cells than the first line.", "Quote cells with a comma.")
    values: dict[str, Any] = {}
    for name, text in cells.items():
        if text.lstrip()[:1] in ("{", "["):
            try:
                values[name] = json.loads(text)
            except ValueError as error:
                hint = "A cell that begins with { or [ is JSON."
                raise Refused(f"{path}, row {number}, column {name}: {error}.", hint) from None
        elif text:
            values[name] = text
    row = {"expected": values.pop("expected", None)}
    row["pins"] = {name.removeprefix(PIN): values.pop(name) for name in list(values) if name.startswith(PIN)}
    return row | {"input": values["input"] if list(values) == ["input"] else values}


async def play(
    client: AsyncClient, name: str, candidates: Sequence[Candidate], rows: list[dict[str, Any]] | None, kept: bool,
    last: int, budget: float | None, score: Mapping[str, Any] | None,
) -> float:  # fmt: skip
    """Play all candidates on some rows, then on the next ones: one by one where they share a budget. Returns what was
    spent."""
    spent, before, done = 0.0, None, 0
    while done < last:
        size = min(PAGE if budget is None else 1, last - done)
        for candidate in candidates:
            found: list[Any] = []
            at = before
            while len(found) < size:
                part = None if rows is None else rows[done + len(found) : done + size]
                calls = None if budget is None else {"budget_usd": max(0.0, round(budget - spent, 9))}
                asked: dict[str, Any] = {"rows": part, "call_models": calls, "score": score, **candidate.what}
                page = await client.backtest(name, kept=kept, last=size - len(found), before=at, **asked)
                found += page["runs"]
                if sys.stderr.isatty():
                    click.echo(f"\r{candidate.name}: {done + len(found)} of {last} at most", nl=False, err=True)
                spent += page["spent_usd"]
                if page["next"] is None:
                    break
                at = page["next"]
            candidate.runs += found
        if len(candidates[0].runs) <= done:
            break
        done, before = len(candidates[0].runs), None if rows is not None else candidates[0].runs[-1]["run"]
    for candidate in candidates:
        candidate.add_up()
    return spent


def _show_candidates(
    candidates: Sequence[Candidate], rows: list[dict[str, Any]] | None, spent: float, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps({"spent_usd": round(spent, 9), "candidates": to_builtins(candidates)}, indent=2))
        return
    click.echo(" " * LABEL + "".join(f"{plain(each.name):<{CELL}.{CELL - 2}}" for each in candidates).rstrip())
    for at, run in enumerate(candidates[0].runs):
        label = run["run"] if rows is None else f"{at + 1} {json.dumps(rows[at]['input'], ensure_ascii=False)}"
        beside = [each.runs[at] for each in candidates if at < len(each.runs)]
        cells = "".join(f"{_cell(each):<{CELL}}" for each in beside)
        click.echo(f"{plain(label):<{LABEL}.{LABEL - 2}}{cells}".rstrip())
        for candidate, each in zip(candidates, beside, strict=False):
            for line in _why(each):
                click.echo(f"    {plain(candidate.name)}: {plain(line)}")
    for candidate in candidates:
        uncalled = sum(run["result"] == "not_called" for run in candidate.runs)
        score = "no score" if candidate.score is None else f"score {candidate.score:.2f}"
        totals = f"{score} ({candidate.scored} of {len(candidate.runs)} rows), {_usd(candidate.cost_usd)}"
        more = f"{candidate.ms} ms, {candidate.tokens} tokens{f', {uncalled} not called' if uncalled else ''}"
        click.echo(f"{plain(candidate.name)}: {totals}, {more}.")
    click.echo(f"Spent: {_usd(round(spent, 9))}.")


def _cell(run: Mapping[str, Any]) -> str:
    score, used = run["score"], run["used"]
    word = run["result"].replace("_", " ") if score is None or score["value"] is None else f"{score['value']:.2f}"
    return f"{word}  {_usd(used['cost_usd'])}  {used['ms']} ms  {used['tokens']}"


def _why(run: Mapping[str, Any]) -> Iterator[str]:
    score = run["score"] or {}
    if difference := score.get("difference"):
        a, b = (difference[side] if difference[side] is not None else "nothing" for side in ("a", "b"))
        yield f"{difference['pointer']} {a[:VALUE]} -> {b[:VALUE]}".lstrip()
    if why := run["reason"] or score.get("reason"):
        yield why


def _usd(usd: float | None) -> str:
    return "no price" if usd is None else f"${usd:.6f}".rstrip("0").rstrip(".")


def exit_code(candidates: Sequence[Candidate], min_score: float | None) -> int:
    """0: each candidate has at least this score and all its rows are scored; without one: all rows end as recorded."""
    for each in candidates:
        if min_score is None and any(run["result"] not in ("same", "played") for run in each.runs):
            return FAILED
        if min_score is not None and (each.scored < len(each.runs) or (each.score or 0.0) < min_score):
            return FAILED
    return OK
