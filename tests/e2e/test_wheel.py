"""The wheel and the sdist: what is in them, and the tutorial with the wheel alone: an empty virtual environment, an
empty folder, no Node and no checkout. tests/e2e/test_tutorial_in_python.py follows the other tutorial."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

import hatch_build
from tests.support.environments import INSTALL_S, PROGRAM, installed, unhashed
from tests.support.loopback import sitecustomize as loopback
from tests.support.server import READY, ROOT, free_port

PACKAGES = ("compiler", "executor", "server", "weft")
PAGE = (ROOT / "docs/tutorial/first-run.md").read_text()

pytestmark = [pytest.mark.proof, pytest.mark.timeout(INSTALL_S + 200), pytest.mark.xdist_group("wheel")]


class Newcomer:
    """Has a Python with the wheel, and types commands of the page in `folder`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        (folder / "bin").mkdir()
        self.programs, self.folder = programs, folder
        self.url = f"http://127.0.0.1:{free_port(random.Random())}"
        own = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PYTHON"))}
        # Without the checkout, but with the guard that fails a test which dials another machine.
        more = {"PATH": str(folder / "bin"), "PYTHONPATH": str(Path(loopback.__file__).parent)}
        self.environ = {**own, **more, "WEFT_PORT": self.url.rpartition(":")[2], "WEFT_LEASE_MS": "1000"}
        self._server: subprocess.Popen[str] | None = None

    def types(self, line: str, code: int = 0, **filled: str) -> str:
        """A command of the page. What it prints."""
        assert line in PAGE
        return self.runs(*(filled.get(word, word) for word in shlex.split(line)), code=code)

    def runs(self, program: str, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [self.programs / program, *words], cwd=self.folder, env=self.environ, capture_output=True, text=True,
            check=False, timeout=110,
        )  # fmt: skip
        assert done.returncode == code, f"{program} {words}\n{done.stdout}\n{done.stderr}"
        return done.stderr + done.stdout

    def serves(self) -> str:
        """`weft serve`. The link that it prints."""
        self._server = subprocess.Popen(
            [self.programs / "weft", "serve"], cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line.startswith(READY.decode()), line
        return line.removeprefix(READY.decode()).strip()

    def develops(self, file: str) -> None:
        """`weft dev`, until it has deployed the workflow of the file and printed a link."""
        self._server = subprocess.Popen(
            [self.programs / "weft", "dev", file], cwd=self.folder, env=self.environ, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        assert self._server.stdout is not None
        assert any("/sign-in" in line for line in self._server.stdout), "weft dev ended"

    def kills(self) -> None:
        if self._server is not None and self._server.stdout is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait(30)
            self._server.stdout.close()
            self._server = None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    return build_once(tmp_path_factory.getbasetemp())


@cache
def build_once(folder: Path) -> Path:
    """For all files that use them. The editor in the wheel is what `make install` built."""
    assert "WEFT_WEB" not in os.environ and hatch_build.is_done(ROOT), "server/_web is not of this web/: make install"
    into = folder / "built"
    into.mkdir()
    return build(ROOT, into)


def build(source: Path, into: Path) -> Path:
    """With an empty PATH: nothing may be built anew."""
    (into / "bin").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(into)], cwd=source, capture_output=True, text=True,
        check=False, timeout=110, env={**os.environ, "PATH": str(into / "bin")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return into


def wheel_in(folder: Path) -> Path:
    (found,) = folder.glob("weft-*.whl")
    return found


def files_in(wheel: Path) -> dict[str, str]:
    """The names, and a hash of each content."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


@pytest.fixture(scope="module")
def programs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a virtual environment with the locked versions of what a server needs, and the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    locked = ["--no-compile", "--require-hashes", "-r", str(ROOT / "requirements.lock")]
    return installed(folder, locked, ["--no-deps", "--no-index", str(wheel_in(built))])


@pytest.fixture
def newcomer(programs: Path, tmp_path: Path) -> Iterator[Newcomer]:
    found = Newcomer(programs, tmp_path)
    yield found
    found.kills()


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(built: Path) -> None:
    found = set(files_in(wheel_in(built)))
    own = {name for name in found if not name.startswith(("server/_web/", "server/examples/", "weft-"))}
    assert {name.partition("/")[0] for name in own} == set(PACKAGES)
    assert not [name for name in found if re.search(r"__pycache__|\.(pyc|db|key|token|wasm|cwasm)$|node_modules", name)]
    for folder, inside in (("server/_web", "server/_web"), ("examples", "server/examples")):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {f"{inside}/{path.relative_to(ROOT / folder)}" for path in files} == {
            name for name in found if name.startswith(f"{inside}/")
        }
    if not (ROOT / ".git").exists():  # an unpacked sdist
        return
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert set(listed.stdout.splitlines()) <= own


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("weft-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
        opened.extractall(tmp_path, filter="data")
    assert not [name for name in names if re.search(r"node_modules|__pycache__|_web/", name)]
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())

    # It has to be built there. The mark of the built editor is a hash over all that a build reads: none is missing.
    assert not hatch_build.is_done(source)
    shutil.copytree(ROOT / "server" / "_web", source / "server" / "_web")
    assert hatch_build.is_done(source)
    again = tmp_path / "again"
    again.mkdir()
    assert files_in(wheel_in(build(source, again))) == files_in(wheel_in(built))


def test_the_first_run_with_the_wheel_alone(newcomer: Newcomer) -> None:
    shows = "import weft, compiler, executor, server; print(weft.__file__, compiler, executor, server)"
    assert newcomer.runs("python", "-c", shows).count(str(newcomer.programs.parent)) == 4
    assert str(ROOT) not in newcomer.runs("python", "-c", "import sys; print(sys.path[2:])")

    link = newcomer.serves()
    with httpx.Client(base_url=newcomer.url) as browser:
        signs_in(browser, link)
        shows_the_editor(browser)
        asked = first_steps(newcomer)
        newcomer.kills()
        newcomer.serves()
        page = browser.get(asked)
        assert page.status_code == 200 and "Greet Grace Hopper?" in page.text
        answered = browser.post(asked, data={"action": "yes"})
        assert answered.status_code == 200, answered.text
        shown = newcomer.types("weft runs")
        for _ in range(300):  # behind the kill its lease has to expire first
            if "waiting" not in shown and "running" not in shown:
                break
            time.sleep(0.1)
            shown = newcomer.types("weft runs")
        assert shown.count("succeeded") == 3, shown
        (last, *_) = browser.get("/api/runs").json()["runs"]
        assert browser.get(f"/api/runs/{last['id']}").json()["output"] == "Good day, dear Grace Hopper."
    as_python(newcomer)
    newcomer.runs("weft", "new-block", "shout")


SMALL_MB = 57  # with bytecode; without pip, which is 25 MB


def test_a_small_installation_runs_functions_drawings_and_a_server(built: Path, tmp_path: Path) -> None:
    """`pip install` of the wheel alone: without the sandbox, stored secrets and the rest of the extra `server`."""
    folder = tmp_path / "small"
    programs = installed(folder, ["-c", unhashed(tmp_path), str(wheel_in(built))])
    libraries = next(folder.glob("lib/python*/site-packages"))
    assert not [name for name in ("wasmtime", "cryptography", "uvloop", "apsw", "rich") if (libraries / name).exists()]
    size_mb = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1024**2
    assert size_mb < SMALL_MB

    home = tmp_path / "home"
    home.mkdir()
    newcomer = Newcomer(programs, home)
    (home / "small.py").write_text(PROGRAM)
    (home / "code.json").write_text((ROOT / "examples/python-code.json").read_text())
    assert newcomer.runs("python", "small.py").splitlines() == ["charged 120"] * 2
    assert "pip install 'quickjs-rs" in newcomer.runs("weft", "validate", "code.json", code=1)
    newcomer.develops("small.py")
    try:
        assert "charged 3" in newcomer.runs("weft", "run", "order", "--input", '{"amount": 3}', "--follow")
    finally:
        newcomer.kills()


def signs_in(browser: httpx.Client, link: str) -> None:
    assert browser.get("/api/runs").status_code == 401
    address, code = link.split("#")
    assert browser.get(address).status_code == 200
    assert browser.post("/login", json={"code": code}).status_code == 200
    assert browser.get("/api/runs").json()["runs"] == []


def shows_the_editor(browser: httpx.Client) -> None:
    page = browser.get("/")
    assert page.headers["content-type"].startswith("text/html") and '<div id="' in page.text
    assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
    assert {name.rpartition(".")[2] for name in assets} >= {"js", "css"}
    for name in assets:
        asset = browser.get(name)
        assert (asset.status_code, len(asset.content) > 100) == (200, True), name
    assert "MIT" in browser.get("/third-party-licenses.md").text
    examples = [each["name"] for each in browser.get("/api/examples").json()["examples"]]
    folder = ROOT / "examples"
    assert sorted(examples) == sorted(path.stem for path in (*folder.glob("*.json"), *folder.glob("templates/*.json")))


def first_steps(newcomer: Newcomer) -> str:
    """The page from `hello.json` until a run waits. Its link."""
    hello = newcomer.folder / "hello.json"
    whole, decision, block, edges = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    document: dict[str, Any] = json.loads(whole)
    ada = """weft run hello.json --input '{"who": "Ada"}' --follow"""

    hello.write_text(json.dumps(document))
    newcomer.types("weft validate hello.json")
    assert newcomer.types(ada).splitlines()[-1] == '"Hello Ada!"'
    hello.write_text(json.dumps(document).replace('"target": "greet"', '"target": "gret"'))
    assert "gret" in newcomer.types("weft validate hello.json", code=1)

    document |= json.loads(f"{{{decision}}}")
    hello.write_text(json.dumps(document))
    assert "skipped" in newcomer.types(ada)

    document["blocks"] |= json.loads(f"{{{block}}}")
    document["edges"] = json.loads(f"[{edges}]")
    hello.write_text(json.dumps(document))
    newcomer.types("""weft run hello.json --input '{"who": "Grace Hopper"}' --follow""", code=3)
    assert "bow" in newcomer.types("weft plan hello.json")
    assert "-->" in newcomer.types("weft plan hello.json --format mermaid")
    (link,) = re.findall(r"http\S+/resume/\S+", newcomer.runs("weft", "inbox"))
    return str(link)


def as_python(newcomer: Newcomer) -> None:
    """What is stored as a document comes back as Python, which deploys to the same document."""
    newcomer.runs("weft", "deploy", "hello.json")
    before = newcomer.runs("weft", "get", "hello")
    (newcomer.folder / "hello.py").write_text(newcomer.runs("weft", "get", "hello", "--python"))
    newcomer.runs("weft", "deploy", "hello.py")
    assert newcomer.runs("weft", "get", "hello") == before
