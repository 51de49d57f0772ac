"""Importers are found as entry points: the one of docs/howto/import-from-sim.md, installed beside that of Sim."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.types.registry import Registry
from executor.kernel.run.compiler import Compiler
from executor.kernel.run.imports import as_ours, importers
from tests.support.command import weft
from tests.support.runs import engine_on, ran
from tests.unit.compiler.imports.sim_documents import block

PAGE = Path(__file__).parents[5] / "docs" / "howto" / "import-from-sim.md"
DOCUMENT = {"title": "two", "steps": ["https://example.com/a", ""], "owner": "me"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package of the page, and a broken one."""
    section = PAGE.read_text().partition("## Import the format of another program")[2].partition("\n## ")[0]
    points, code = (re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)[0] for kind in ("toml", "python"))
    name, module = re.findall(r'(\w+) = "(\w+)"', points)[0]
    (tmp_path / f"{module}.py").write_text(code)
    about = tmp_path / f"{module}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    group = points.partition("[project.entry-points.")[2].partition("]")[0].strip('"')
    (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\nbroken = weft_no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importers.cache_clear()
    yield tmp_path
    importers.cache_clear()


def test_an_installed_importer_is_asked_besides_that_of_sim(installed: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert list(importers()) == ["n8n", "sim", "steps"]
    assert "'broken' (weft_no_such_module) cannot be loaded" in caplog.records[0].getMessage()
    made = as_ours(DOCUMENT)
    assert (made.format, list(made.document["blocks"])) == ("steps", ["start", "step0", "step1"])
    exported = {"version": "1.0", "blocks": [block("s", "start_trigger")], "connections": [], "loops": {}}
    assert as_ours(exported).format == "sim"
    ours = {"format": "weft/1", "steps": [], "blocks": {}}
    assert as_ours(ours).format is None


async def test_findings_point_into_the_document_that_was_given(installed: Path) -> None:
    compiled = await Compiler(Registry.load(), ()).compile(DOCUMENT)
    assert compiled.plan is None
    assert [(one.code, one.pointer) for one in compiled.diagnostics] == [
        ("required", "/steps/1"),
        ("import_lossy", "/owner"),
    ]


async def test_what_is_stored_run_or_dropped_is_converted(installed: Path, tmp_path: Path) -> None:
    flow = {"title": "none", "steps": [], "owner": "me"}
    async with engine_on(tmp_path / "weft.db") as engine:
        draft = await engine.drafts.create(flow)
        assert draft.document["format"] == "weft/1" and "owner" in draft.document["description"]
        assert (await engine.workflows.save(flow, "none")).version == 1
        assert orjson.loads(await engine.workflows.converted(orjson.dumps(flow))) == as_ours(flow).document
        assert (await ran(engine, flow, input={"n": 1})).output == {"n": 1}


def test_the_command_converts_it(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "two.json"
    source.write_bytes(orjson.dumps(DOCUMENT | {"steps": ["https://example.com/a"]}))
    environ: dict[str, Any] = {"PYTHONPATH": str(installed)}
    done = weft("import", str(source), environ=environ)
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout) == as_ours(orjson.loads(source.read_bytes())).document
    assert "The owner is not imported." in done.stderr
    assert weft("validate", str(source), environ=environ).returncode == 0
    source.write_text("{}")
    refused = weft("import", str(source), environ=environ)
    assert refused.returncode != 0 and "not a workflow that n8n or Sim or Steps exported" in refused.stderr
