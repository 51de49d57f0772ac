"""Whether a database holds what its server has acknowledged."""

from __future__ import annotations

import json

from tests.e2e.crash.people import Ledger
from tests.support.journal import Journal, data_of, key_of


def holds(journal: Journal, ledger: Ledger) -> None:
    """Whatever was acknowledged is there, and nothing besides."""
    assert sorted(journal.runs) == sorted(run for run, _ in ledger.runs.values()), "a run is missing, or there twice"
    for run, job in ledger.runs.values():
        assert json.loads(journal.runs[run]["input"]).items() >= job.input.items()
        job.check(json.loads(journal.runs[run]["output"]))
    for run, transcript in ledger.transcripts.items():
        seen = [(event["seq"], event["at_ms"], event["type"], event["key"], event["attempt"]) for event in transcript]
        assert seen == [
            (row["seq"], row["at_ms"], row["type"], key_of(row) or None, row["attempt"]) for row in journal.events[run]
        ], run
    _holds_answers(journal, ledger)


def _holds_answers(journal: Journal, ledger: Ledger) -> None:
    for press in ledger.presses.values():
        wait = journal.waits[press.run, press.wait]
        assert (wait["status"], wait["answered_by"]) == ("answered", press.by)
        closed = [
            data_of(row)
            for row in journal.events[press.run]
            if row["type"] == "wait.closed" and key_of(row) == press.key
        ]
        assert [(data["outcome"], data["by"]) for data in closed] == [("answered", press.by)]
        (output,) = (
            json.loads(row["output"])
            for row in journal.events[press.run]
            if row["type"] == "node.succeeded" and key_of(row) == press.key
        )
        assert (output["action"], output["answered_by"]) == (press.action, press.by)
