"""I11: a secret is found wherever it lies, in every spelling, and nothing else is."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from urllib.parse import quote

import pytest

from executor.service.upkeep.findings import Evidence, Finding
from executor.service.upkeep.invariants import check
from executor.service.upkeep.secrets_scan import spellings
from tests.unit.executor.service.upkeep.conftest import Copy

SECRET = 'kä"nary+/ 0123456789'


def found(copy: Copy, run: str | None = None) -> list[Finding]:
    with closing(copy.read()) as db:
        return list(check(db, run=run, only={"I11"}, evidence=Evidence(secrets=[SECRET])))


def test_a_database_without_it(copy: Copy) -> None:
    assert found(copy) == []


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"Bearer {SECRET}!",
        json.dumps({"a": [SECRET]}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        "https://example.org/?q=" + quote(SECRET, safe=""),
        SECRET.encode().hex(),
        *(base64.b64encode(("x" * n + SECRET + "tail").encode()).decode() for n in range(5)),
        *(base64.urlsafe_b64encode(("x" * n + SECRET).encode()).decode() for n in range(5)),
    ],
)
def test_every_spelling_is_found_in_a_blob(copy: Copy, text: str) -> None:
    run = copy.run["hello"]
    copy.spoil("UPDATE loose_events SET output = CAST(? AS BLOB) WHERE run_id = ? AND seq = 2", text, run)
    (finding,) = found(copy)
    assert (finding.invariant, finding.run) == ("I11", run)
    assert "batches.payload" in finding.what and SECRET not in repr(finding)


def test_every_table_is_looked_into(copy: Copy) -> None:
    run = copy.run["asking"]
    copy.spoil("UPDATE waits SET answered_by = ? WHERE run_id = ?", SECRET, run)
    copy.spoil("UPDATE runs SET input = CAST(? AS BLOB) WHERE id = ?", SECRET, copy.run["hello"])
    copy.spoil("UPDATE workflows SET document = CAST(? AS BLOB)", SECRET)
    places = {(f.what.partition(" rows of ")[2], f.run) for f in found(copy)}
    assert places == {("waits.answered_by", run), ("run_details.input", copy.run["hello"]), ("workflows.document", "")}
    assert [f.run for f in found(copy, run)] == [run]


def test_a_table_of_later_is_looked_into_as_well(copy: Copy) -> None:
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute('CREATE TABLE "later on" (run_id TEXT, "a note" TEXT)')
        db.execute('INSERT INTO "later on" VALUES (?, ?)', ("r", SECRET))
    assert [(f.run, "later on.a note" in f.what) for f in found(copy)] == [("r", True)]


def test_spellings_are_long_enough_to_mean_something() -> None:
    assert all(len(spelling) >= 8 for spelling in spellings("12345678"))
