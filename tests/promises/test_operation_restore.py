"""A PostgreSQL database is restored from its dump, by `weft restore` and by the commands of the documentation."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("psycopg")

import psycopg
from psycopg.conninfo import conninfo_to_dict

from executor.kernel.store.postgres.reading import open_reading
from executor.service.upkeep.doctor import examine
from server import cli
from server.app import build_engine
from server.cli.common import Refused
from server.settings import Settings
from tests.support.documents import ASKING, document
from tests.support.postgres import as_url, clients
from tests.support.runs import settled, token_of

KEY = "a secret for tests only"
DOCS = Path(__file__).parents[2] / "docs" / "howto" / "run-on-postgresql.md"


class Place:
    """A database of one test, and what was in it when it was dumped. `admin` is the address of the server."""

    def __init__(self, admin: str, name: str, folder: Path) -> None:
        self.admin = admin
        self.name = name
        self.dump = folder / "weft.dump"
        self.address = as_url(admin, dbname=name)
        self.links: list[str] = []

    async def fill(self) -> None:
        """Ended runs and open approvals, a dump beside the running engine, and a run that the dump lacks."""
        engine = await build_engine(Settings(db_address=self.address, secret_key=KEY))
        try:
            await engine.workflows.save(
                document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": 5}}})
            )
            for _ in range(3):
                await engine.wait_finished((await engine.submit("flow")).run, 60)
                [wait] = (await settled(engine, (await engine.submit(ASKING)).run)).waits
                assert wait.link is not None
                self.links.append(token_of(wait.link))
            await asyncio.to_thread(self.shell, f'pg_dump --format=custom --file={self.dump} --dbname="$WEFT_DB"')
            await engine.wait_finished((await engine.submit("flow")).run, 60)
            await engine.answer(self.links[0], {}, "yes")
        finally:
            await engine.close()

    def shell(self, command: str) -> None:
        server = conninfo_to_dict(self.admin)
        environ = {"PATH": clients(), "WEFT_DB": self.address}
        environ |= {"PGHOST": str(server["host"]), "PGUSER": str(server["user"])}
        ran = subprocess.run(
            ["sh", "-ec", command],
            check=False,
            env={**os.environ, **environ},
            cwd=self.dump.parent,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, (command, ran.stderr)

    def databases(self) -> list[str]:
        """Those that were made from this one, and itself."""
        with psycopg.connect(self.admin) as connection:
            found = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE %s ORDER BY 1", [self.like])
            return [name for (name,) in found]

    @property
    def like(self) -> str:
        return f"{self.name}%"

    def runs(self, name: str | None = None) -> tuple[int, int]:
        """How many there are, and how many of them wait."""
        with psycopg.connect(as_url(self.admin, dbname=name or self.name)) as connection:
            query = "SELECT count(*), count(*) FILTER (WHERE status = 'waiting') FROM runs"
            [(count, waiting)] = connection.execute(query).fetchall()
            return count, waiting

    async def works(self) -> None:
        """Every promise holds, and each question that was open in the dump is answered by its old link."""
        with closing(open_reading(self.address)) as reading:
            report = examine(reading, reading.clock_ms())
        assert report.healthy and not report.findings, report.findings
        engine = await build_engine(Settings(db_address=self.address, secret_key=KEY))
        try:
            for link in self.links:
                answered = await engine.answer(link, {}, "yes")
                assert (await engine.wait_finished(answered.run, 60)).status == "succeeded"
            await engine.wait_finished((await engine.submit("flow")).run, 60)
        finally:
            await engine.close()


@pytest.fixture
def place(postgres_server: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    name = getattr(request, "param", f"weft_{uuid4().hex[:8]}")
    place = Place(postgres_server, name, tmp_path)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            asyncio.run(place.fill())
            yield place
        finally:
            for made in place.databases():
                connection.execute(f'DROP DATABASE "{made}" WITH (FORCE)')


@pytest.fixture
def restore(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("PATH", clients())
    monkeypatch.setenv("WEFT_SECRET_KEY", KEY)
    monkeypatch.setenv("WEFT_DB", place.address)
    return lambda *options: CliRunner().invoke(cli.weft, ["restore", str(place.dump), *options], standalone_mode=False)


def refusal(ran: Result) -> Refused:
    assert isinstance(ran.exception, Refused), (ran.output, ran.exception)
    return ran.exception


def test_a_database_is_restored_and_its_open_questions_answered(place: Place, restore: Callable[..., Result]) -> None:
    assert "already exists" in refusal(restore()).message
    assert place.databases() == [place.name]
    with psycopg.connect(place.admin, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE {place.name} SET search_path TO public, "Other"')
        connection.execute(f"REVOKE CONNECT ON DATABASE {place.name} FROM PUBLIC")
    made = restore("--force")
    assert made.return_value == 0, (made.output, made.exception)
    assert f"{place.name}: 6 runs, 3 of them open." in made.stdout
    [name, aside] = place.databases()
    assert name == place.name and aside.startswith(f"{name}_before_") and aside in made.stderr
    assert (place.runs(), place.runs(aside)) == ((6, 3), (7, 2))
    with psycopg.connect(place.address) as connection:
        assert connection.execute("SHOW search_path").fetchone() == ('public, "Other"',)
        query = "SELECT has_database_privilege('pg_monitor', current_database(), 'CONNECT')"
        assert connection.execute(query).fetchone() == (False,)
    asyncio.run(place.works())


def test_a_new_server_needs_no_force(place: Place, restore: Callable[..., Result]) -> None:
    with psycopg.connect(place.admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {place.name} WITH (FORCE)")
    made = restore()
    assert made.return_value == 0, (made.output, made.exception)
    assert place.databases() == [place.name]
    asyncio.run(place.works())


def test_a_database_in_use_is_not_touched(place: Place, restore: Callable[..., Result]) -> None:
    async def beside() -> Result:
        engine = await build_engine(Settings(db_address=place.address, secret_key=KEY))
        try:
            return await asyncio.to_thread(restore, "--force")
        finally:
            await engine.close()

    refused = refusal(asyncio.run(beside()))
    assert "is in use: weft" in refused.message and "weft worker" in refused.hint
    assert place.databases() == [place.name] and place.runs() == (7, 2)


def test_one_that_comes_meanwhile_keeps_both(
    place: Place, restore: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    from executor.service.upkeep import restore_postgres

    came = []

    def look(*found: object, **also: object) -> object:
        came.append(psycopg.connect(place.address, application_name="a report"))
        return examine(*found, **also)  # type: ignore[arg-type]

    monkeypatch.setattr(restore_postgres, "examine", look)
    refused = refusal(restore("--force"))
    assert "a report (1 of role" in refused.message and place.runs() == (7, 2)
    for each in came:
        each.close()
    place.shell(next(line for line in refused.hint.splitlines() if "psql" in line))
    assert len(place.databases()) == 2
    asyncio.run(place.works())


def test_what_is_no_dump_changes_nothing(place: Place, restore: Callable[..., Result]) -> None:
    whole = place.dump.read_bytes()
    for content, complaint in ((b"SELECT 1", "valid archive"), (whole[: len(whole) - 2000], "cannot be restored")):
        place.dump.write_bytes(content)
        refused = refusal(restore("--force"))
        assert complaint in refused.message and "was not changed" in refused.hint
    assert place.databases() == [place.name] and place.runs() == (7, 2)


def test_a_dump_with_a_broken_promise_is_refused(place: Place, restore: Callable[..., Result]) -> None:
    with psycopg.connect(place.address, autocommit=True) as connection:
        connection.execute("UPDATE heads SET seq = seq + 1 WHERE status = 'waiting'")
    place.shell(f'pg_dump --format=custom --file={place.dump} --dbname="$WEFT_DB"')
    refused = refusal(restore("--force"))
    assert "broken promises" in refused.message
    assert place.databases() == [place.name]


def test_a_role_without_the_right_gets_the_commands(place: Place, restore: Callable[..., Result]) -> None:
    role = f"limited_{uuid4().hex[:8]}"
    with psycopg.connect(place.admin, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            refused = refusal(restore("--force", "--db", as_url(place.admin, dbname=place.name, user=role)))
            assert f"role {role} lacks the right that this needs: CREATEDB" in refused.message
            assert f"ALTER ROLE {role} CREATEDB" in refused.hint
            connection.execute(f"ALTER ROLE {role} CREATEDB")
            refused = refusal(restore("--force", "--db", as_url(place.admin, dbname=place.name, user=role)))
            assert "to be a member of" in refused.message
            connection.execute(f"ALTER DATABASE {place.name} OWNER TO {role}")
            place.shell("\n".join(re.findall(r"^ *((?:createdb|pg_restore|psql) .*)$", refused.hint, re.M)))
            assert len(place.databases()) == 2
            asyncio.run(place.works())
            with psycopg.connect(as_url(place.admin, dbname=place.name)) as restored:
                restored.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER")
        finally:
            for name in place.databases():
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            connection.execute(f"DROP ROLE {role}")


@pytest.mark.skipif("WEFT_TEST_DATABASE" in os.environ, reason="needs a server that has no database named weft")
@pytest.mark.parametrize("place", ["weft"], indirect=True)
@pytest.mark.parametrize("by", ["weft restore", "createdb"])
def test_the_commands_of_the_documentation_work(place: Place, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    section = DOCS.read_text().partition("## Back up")[2].partition("\n## ")[0]
    [commands] = [block for block in re.findall(r"```bash\n(.*?)```", section, re.DOTALL) if by in block]
    folder = place.dump.parent
    (folder / "weft").write_text(f'#!/bin/sh\ncd {Path.cwd()} && exec {sys.executable} -m server "$@"\n')
    (folder / "weft").chmod(0o755)
    monkeypatch.setenv("WEFT_SECRET_KEY", KEY)
    restoring = "".join(line for line in commands.splitlines(keepends=True) if not line.startswith("pg_dump"))
    place.shell(f"PATH={folder}:$PATH\n{restoring.replace('weft.dump', str(place.dump))}")
    assert len(place.databases()) == 2 and place.runs() == (6, 3)
    asyncio.run(place.works())
