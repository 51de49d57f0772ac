"""The position up to which a database was right: `weft doctor` checks everything new, open or wrong before, and a part
of the rest.

For a file it is in one beside it, because no process but a server writes to the database; on PostgreSQL, a row of
`upkeep`. It is not valid for a copy of the database. For a small database, nothing is kept."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from executor.errors import StoreError
from executor.kernel.process.extras import needs_psycopg
from executor.kernel.store.reading import Reading
from executor.kernel.store.topics.upkeep import NOTE, PUT_NOTE
from executor.service.upkeep.doctor import Report, examine
from executor.service.upkeep.findings import Evidence, Finding, Part
from executor.service.upkeep.invariants import EVERYTHING, count_runs, sample

log = logging.getLogger("weft.upkeep")

NAME: Final = "doctor"
SAMPLE: Final = 1_000  # runs of the rest that are checked each time, one after the other
MARGIN_MS: Final = 3_600_000  # by which clocks may differ, and transactions be open
WRONG_MAX: Final = 1_000
SAVE_EVERY_S: Final = 30.0


class Checked(Struct):
    """Runs that ended before `until_ms` were right, but for those of `wrong`. `began_ms`: of the first look at
    everything while it is not complete, which has got to the run `after`. `sampled`: the last run of the sample."""

    place: str
    version: str
    until_ms: int = 0
    wrong: tuple[str, ...] = ()
    sampled: str = ""
    began_ms: int = 0
    after: str = ""

    @property
    def part(self) -> Part:
        if self.until_ms:
            return Part(self.until_ms, "\U0010ffff", self.wrong)
        return Part(self.began_ms, self.after, self.wrong) if self.after else EVERYTHING


class Progress(Struct):
    """`total` is approximate."""

    total: int = 0
    done: int = 0
    last: str = ""
    findings: int = 0


class Examination:
    """One call of the doctor. `progress` can be read while it works, and after it was interrupted."""

    def __init__(
        self, db: Reading, database: Path | str, version: str, *, full: bool, report: Callable[[Progress], None]
    ) -> None:
        self.progress = Progress()
        self.lost = ""  # why the position could not be saved
        self._db = db
        self._database = database
        self._report = report
        self._now_ms = db.clock_ms()
        before = None if full else _load(db, database)
        is_same = before is not None and (before.place, before.version) == (db.identity(), version)
        self._before = before if before is not None and is_same else Checked(db.identity(), version)
        self._wrong: set[str] = set()
        self._is_wrong_at_large = False
        self._saved_s = time.monotonic()

    def run(self, evidence: Evidence) -> Report:
        part, before = self._before.part, self._before
        sampled: list[str] = []
        if before.until_ms:
            sampled = sample(self._db, before.sampled, SAMPLE)
            part = Part(part.since_ms, part.done, tuple(dict.fromkeys((*part.named, *sampled))))
        self.progress.total = count_runs(self._db, part)
        self._report(self.progress)
        found = examine(
            self._db, self._now_ms, evidence=evidence, part=part, seen=lambda id: self._see(id, part), note=self._note
        )
        if all(promise.findings is None for promise in found.promises):  # the schema is not known
            return found
        last = sampled[-1] if sampled else before.sampled
        until_ms = max(1, self._now_ms - MARGIN_MS)
        self._save(Checked(before.place, before.version, until_ms, tuple(sorted(self._wrong)), last))
        return found

    def _see(self, id: str, part: Part) -> None:
        self.progress.done += 1
        self.progress.last = id
        self._report(self.progress)
        if id not in part.named and time.monotonic() > self._saved_s + SAVE_EVERY_S:
            self.keep()

    def keep(self) -> None:
        """Save the progress of the first check of everything; later ones are short."""
        self._saved_s = time.monotonic()
        before = self._before
        if before.until_ms or not self.progress.last or self.progress.last in before.wrong:
            return
        wrong = tuple(sorted(self._wrong | set(before.wrong)))
        began_ms, after = before.began_ms or self._now_ms - MARGIN_MS, max(before.after, self.progress.last)
        self._save(Checked(before.place, before.version, 0, wrong, "", began_ms, after))

    def _note(self, finding: Finding) -> None:
        self.progress.findings += 1
        if finding.run:
            self._wrong.add(finding.run)
        else:
            self._is_wrong_at_large = True

    def _save(self, checked: Checked) -> None:
        """Save the position, unless there are problems of no run, or of too many: then all is checked the next time as
        well."""
        is_small = self.progress.total <= SAMPLE and not self._before.part.since_ms
        if self._is_wrong_at_large or len(checked.wrong) > WRONG_MAX or is_small:
            return
        try:
            _store(self._db, self._database, msgspec.json.encode(checked), self._now_ms)
        except (OSError, StoreError) as error:
            self.lost = str(error)


def _load(db: Reading, database: Path | str) -> Checked | None:
    try:
        if isinstance(database, Path):
            data = _file(database).read_bytes()
        else:
            rows = db.rows(NOTE, {"name": NAME})
            data = bytes(rows[0][0]) if rows else b""
        return msgspec.json.decode(data, type=Checked)
    except (OSError, StoreError, msgspec.MsgspecError):  # none, or of an older schema
        return None


def _file(database: Path) -> Path:
    return database.with_name(database.name + ".checked")


def _store(db: Reading, database: Path | str, data: bytes, now_ms: int) -> None:
    if isinstance(database, Path):
        draft = database.with_name(f"{database.name}.checked.{os.getpid()}")
        try:
            draft.write_bytes(data)
            os.replace(draft, _file(database))
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
        return
    with needs_psycopg():
        from executor.kernel.store.postgres.reading import write_beside
    write_beside(database, PUT_NOTE, {"name": NAME, "data": data, "now": now_ms})
