"""Settings of all tests."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]  # xdist has no types

from executor.kernel.process.repeated import OUTAGE
from tests.support import fresh_database
from tests.support.loopback import sitecustomize as loopback

# How long one example takes, or making it, says how busy the machine is; what must be quick measures its own time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Most tests make a database of their own. In memory, its syncs cost nothing; no test but proofs depends on a disk.
MEMORY = "/dev/shm"
MEMORY_MIN = 4 << 30


# The settings of a user's own installation. Other WEFT_ variables are settings of tests.
OF_A_USER = ("WEFT_DATA", "WEFT_DB", "WEFT_FUNCTIONS", "WEFT_RUN", "WEFT_SECRET_KEY", "WEFT_TOKEN", "WEFT_URL")


def pytest_configure() -> None:
    for name in OF_A_USER:
        os.environ.pop(name, None)
    if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)  # `make check` sets it to a disk
    _stay_on_loopback()
    fresh_database.install()


def _stay_on_loopback() -> None:
    """This process and those that it starts, each of pytest-xdist with a file of its own for what was refused."""
    file, name = tempfile.mkstemp(prefix="weft-tests-")
    os.close(file)
    atexit.register(Path(name).unlink, missing_ok=True)
    folder = str(Path(loopback.__file__).parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ |= {
        loopback.VARIABLE: name,
        "PYTHONPATH": os.pathsep.join([folder, *(path for path in paths if path not in ("", folder))]),
    }
    loopback.install()


@pytest.fixture(autouse=True)
def _no_outage_before() -> None:
    """What an earlier test has logged about a database is not left out of the log of this one."""
    OUTAGE._logged_at_s.clear()
    OUTAGE._stopped.clear()


@pytest.fixture(autouse=True)
def _on_loopback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that has dialled another machine, itself or by a process that it started, has failed; one that installs
    packages may (`make soak`)."""
    name = os.environ.get(loopback.VARIABLE, "")
    if request.node.get_closest_marker("install") is not None:
        monkeypatch.delenv(loopback.VARIABLE)
        name = ""
    yield
    if name and os.path.getsize(name):
        found = Path(name).read_text()
        os.truncate(name, 0)
        pytest.fail(f"the test has tried to reach other machines:\n{found}", pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole-files",
        action="store_true",
        help="give each file of tests to one worker, with --dist loadgroup; what is set up for a file is set up once",
    )


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """In the order of collection: the largest group is not always what takes longest."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getoption("whole_files") else None


# What `make test` runs of tests that are no proofs; `make check` runs the rest. Nothing here needs PostgreSQL.
TESTS = Path(__file__).parent
NEAR = (
    "unit",
    "words",
    "performance",
    "simulation",
    "conformance",
    "web/test_web.py",
    "e2e/crash/test_kill.py",
    "browser/test_approval.py",
    "browser/test_canvas.py",
    "browser/test_restart.py",
    "test_loopback.py",
    "test_suites.py",
    "test_threats.py",
)
NOT_NEAR = (  # each takes longer than a whole room of unit tests
    "conformance/store/test_two_sessions.py",
    "conformance/store/test_two_stores.py",
    "unit/executor/open/testing/test_crashes.py",
    "unit/executor/service/views/test_run_slices_of_long_runs.py",
    "unit/server/cli/test_documents_python.py",
)


@cache
def _is_near(path: Path) -> bool:
    file = path.relative_to(TESTS).as_posix()
    return f"{file}/".startswith(tuple(f"{name}/" for name in NEAR)) and file not in NOT_NEAR


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Reading files of which no test is selected takes longer than many tests."""
    unread = config.option.markexpr == "near" and collection_path.is_file() and TESTS in collection_path.parents
    return True if unread and not _is_near(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collection makes half a million objects that stay: looking for garbage among them takes a fifth of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker has much left when the others are done; unit tests come last."""
    for item in items:
        if _is_near(item.path) and "postgres" not in item.nodeid.lower() and not item.get_closest_marker("proof"):
            item.add_marker("near")
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, "unit" in item.path.parts))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Where psycopg is, which brings this database."""
    pytest.importorskip("psycopg")
    from tests.support.postgres import server

    with server() as address:
        yield address


@pytest.fixture
def migrated() -> bool:
    """Return whether `postgres` has the schema of this code. Tests of what begins with an empty database replace it."""
    return True


@pytest.fixture
def postgres(postgres_server: str, migrated: bool) -> Iterator[str]:
    """The address of a database without a row; with WEFT_TEST_POOL=1 through pgbouncer in transaction mode."""
    from tests.support.pgbouncer import pool
    from tests.support.postgres import database

    with database(postgres_server, f"test-{uuid4().hex}", empty=not migrated) as address:
        if os.environ.get("WEFT_TEST_POOL"):
            with pool(address, 4) as pooled:
                yield pooled
        else:
            yield address
