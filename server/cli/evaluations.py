"""An evaluation of `weft backtest`: several documents and models on the same rows, side by side."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct, to_builtins

from server.cli.common import FAILED, OK, Refused, counted
from server.cli.render import plain

if TYPE_CHECKING:
    from server.client import AsyncClient

PAGE: Final = 50
ROWS_MAX: Final = 1_000
CELL, LABEL, VALUE = 36, 24, 60  # characters
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


def show(candidates: Sequence[Candidate], rows: list[dict[str, Any]] | None, spent: float, as_json: bool) -> None:
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
