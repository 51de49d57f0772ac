"""`weft import` of folders with exports of both programs and with other files."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from server import cli
from tests.support.n8n_documents import fields, node, workflow

PAY = node("Pay", "pipedrive")
ONE = workflow([node("Start", "manualTrigger"), node("It", "set", 3.4, **fields(a="={{ $json.a }}"))], "Start > It")
TWO = workflow([node("Start", "manualTrigger"), PAY], "Start > Pay")


def weft(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.weft, list(arguments), standalone_mode=False)
    if result.exception is not None:
        return getattr(result.exception, "code", 9), result.output + str(result.exception)
    return result.return_value or 0, result.output


def folder(tmp_path: Path, **files: object) -> Path:
    made = tmp_path / "in"
    for name, content in files.items():
        path = made / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return made


def test_a_folder_with_other_and_broken_files(tmp_path: Path) -> None:
    source = folder(tmp_path, one=ONE, sub__all=[ONE, TWO], package={"version": "1"}, broken="{", deep="[" * 100_000)
    out = tmp_path / "out"
    code, said = weft("import", str(source), "-o", str(out))
    assert code == 1, "not all could be read"
    assert "broken.json is not JSON" in said and "deep.json is nested too deeply" in said
    assert {str(path.relative_to(out)) for path in out.rglob("*.*")} == {
        "one.json", "sub/all-1.json", "sub/all-2.json", "IMPORT.md"
    }  # fmt: skip
    report = (out / "IMPORT.md").read_text()
    assert "## sub/all.json, workflow 2" in report and "broken.json is not JSON" in report
    assert '- [ ] Replace "Pay"' in report and "## Other files\n\n- package.json" in report and "\x1b" not in report


def test_nothing_is_written_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    source, out = folder(tmp_path, one=ONE, two=TWO), tmp_path / "out"
    out.mkdir()
    (out / "two.json").write_text("mine")
    code, said = weft("import", str(source), "-o", str(out))
    assert code == 4 and "two.json already exists" in said
    assert [path.name for path in out.iterdir()] == ["two.json"] and (out / "two.json").read_text() == "mine"
    assert weft("import", str(source), "-o", str(out), "--force", "--python")[0] == 0
    assert "Function(" in (out / "two.py").read_text()


def test_a_folder_without_exports_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = weft("import", str(folder(tmp_path, package={"version": "1"})), "-o", str(out))
    assert code == 4 and "no workflow of another program" in said and not out.exists()


def test_a_list_of_workflows_needs_a_folder(tmp_path: Path) -> None:
    source = folder(tmp_path, all=[ONE, TWO]) / "all.json"
    code, said = weft("import", str(source))
    assert code == 4 and "has a list of 2" in said
    assert weft("import", str(source), "-o", str(tmp_path / "out"))[0] == 0
    assert (tmp_path / "out" / "all-2.json").exists()
