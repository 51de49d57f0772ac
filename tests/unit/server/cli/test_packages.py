"""`weft add` and `weft packages`: what is refused, and that nothing of a package runs before a person agreed."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from server import cli
from server.packages import index as signing

TEA: dict[str, Any] = {
    "format": "weft-connector/1",
    "service": "tea",
    "title": "Tea",
    "base_url": "https://{{account}}.tea.example/api",
    "auth": {"kind": "bearer", "provider": "github", "scopes": "repo user"},
    "fields": {"account": {"type": "string", "title": "Account"}},
    "operations": {
        "order": {"title": "Order", "method": "POST", "path": "/orders", "required": ["account"]},
        "upload": {"title": "Upload", "method": "POST", "path": "/", "base_url": "https://files.example:8443"},
    },
}
HOSTS = ["*.tea.example", "files.example:8443"]
SCOPES = ["github: repo", "github: user"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of a JSON package and a wheel with code, which is used."""
    monkeypatch.chdir(tmp_path)
    Path("tea.json").write_text(json.dumps(TEA))
    shown = run("packages", "pack", "tea.json", "--name", "weft-tea", "--version", "1.2", "-o", "weft-tea.json")
    assert shown.exit_code == 0, shown.output
    wheel()
    key = run("packages", "key", "-o", "signing.key").output.strip()
    assert Path("signing.key").stat().st_mode & 0o077 == 0
    made = run("packages", "index", "weft-tea.json", WHEEL, "--signing-key", "signing.key", "-o", "index.json")
    assert made.exit_code == 0, made.output
    monkeypatch.setenv("WEFT_PACKAGES", "index.json")
    monkeypatch.setenv("WEFT_PACKAGES_KEY", key)
    return tmp_path


WHEEL = "weft_brew-0.1-py3-none-any.whl"


def wheel(more: dict[str, str] | None = None) -> None:
    """A wheel whose code leaves a file where it runs."""
    canary = "import pathlib\npathlib.Path('ran').touch()\n"
    about = "weft_brew-0.1.dist-info"
    points = "[weft.blocks]\nbrew = weft_brew:block\n[weft.connectors]\nbrew = weft_brew\n"
    files = {
        "weft_brew/__init__.py": canary,
        "weft_brew/brew.json": json.dumps(TEA | {"service": "brew"}),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: weft_brew\nVersion: 0.1\nRequires-Dist: other>=2\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": points,
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(WHEEL, "w") as archive:
        for name, text in (files | (more or {})).items():
            archive.writestr(name, text)


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli.weft, arguments, input=input)


def refused(*arguments: str) -> str:
    done = run("add", "--to", "site", "--yes", *arguments)
    assert done.exit_code == 1 and not Path("site").exists() and not Path("ran").exists(), done.output
    return click.unstyle(done.output).replace("\n", " ")


def signed_again(change: Callable[[dict[str, Any]], object]) -> None:
    """Change the index, and sign it with the right key."""
    index = json.loads(Path("index.json").read_bytes())
    change(index)
    data = json.dumps(index).encode()
    Path("index.json").write_bytes(data)
    Path("index.json.sig").write_bytes(signing.sign(data, Path("signing.key").read_text()))


def test_a_package_of_the_index_is_shown_and_installed_when_a_person_agrees(folder: Path) -> None:
    listed = run("packages", "list").output.splitlines()
    assert listed == [
        "weft-tea 1.2  *.tea.example, files.example:8443",
        "weft-brew 0.1  *.tea.example, files.example:8443  Python code",
    ]
    asked = run("add", "weft-tea", "--to", "site", input="n\n")
    assert asked.exit_code == 1 and not Path("site").exists() and "Nothing was installed." in asked.output
    assert asked.output.splitlines()[:4] == [
        "weft-tea 1.2 (signed, of index.json)",
        "  connector.tea: Tea, 2 operations",
        f"  sends requests to: {', '.join(HOSTS)}",
        f"  asks for the scopes: {', '.join(SCOPES)}",
    ]
    done = run("add", "weft-tea==1.2", "--to", "site", input="y\n")
    assert done.exit_code == 0 and "Installed weft-tea 1.2 in site." in done.output
    assert json.loads(Path("site/tea.json").read_bytes()) == TEA


def test_a_wheel_is_installed_without_running(folder: Path) -> None:
    done = run("add", "weft-brew", "--to", "site", "--yes")
    assert done.exit_code == 0, done.output
    assert "  has Python code (brew): it can do all that the server can" in done.output
    assert "  requires what is not installed with it: other>=2" in done.output
    assert Path("site/weft_brew/brew.json").exists() and not Path("ran").exists()
    wheel({"weft_brew/slack.json": json.dumps(TEA | {"service": "slack"})})
    assert "connector.slack: Tea, 2 operations (left out: weft has" in run("add", WHEEL, "--to", "site", "--yes").output


def test_a_bad_signature(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, other = signing.new_key()
    assert "is not signed with the key of this installation" in refused("weft-tea", "--key", other)
    assert "WEFT_PACKAGES_KEY must be 32 bytes in base64" in refused("weft-tea", "--key", "x")
    data = Path("index.json").read_bytes()
    Path("index.json").write_bytes(data.replace(b"1.2", b"1.3"))
    assert "or was changed after that" in refused("weft-tea")
    Path("index.json.sig").unlink()
    assert "index.json.sig cannot be read" in refused("weft-tea")
    monkeypatch.delenv("WEFT_PACKAGES_KEY")
    assert "There is no key for the index index.json" in refused("weft-tea")
    monkeypatch.delenv("WEFT_PACKAGES")
    assert "There is no index of packages" in refused("weft-tea")


def test_another_file_than_the_index_lists(folder: Path) -> None:
    Path("weft-tea.json").write_bytes(Path("weft-tea.json").read_bytes() + b" ")
    assert "it is another file" in refused("weft-tea")
    assert "index has no package weft-coffee" in refused("weft-coffee")
    assert re.search(r"index has no package weft-tea 9\..+It has: 1\.2$", refused("weft-tea==9").strip())
    signed_again(lambda index: index["packages"][1].update(version="0.2"))
    assert "is weft-brew 0.1, and the index lists weft-brew 0.2" in refused("weft-brew")


@pytest.mark.parametrize(
    ("at", "change", "said"),
    [
        (0, {"hosts": HOSTS[:1]}, "uses the host 'files.example:8443', which the index does not declare"),
        (0, {"scopes": ["github: repo"]}, "uses the scope 'github: user', which the index does not declare"),
        (1, {"code": False}, "has Python code (brew), which the index does not declare"),
    ],
)
def test_an_index_that_hides_what_a_package_uses(folder: Path, at: int, change: dict[str, Any], said: str) -> None:
    signed_again(lambda index: index["packages"][at].update(change))
    assert said in refused(index_name(at))


def index_name(at: int) -> str:
    return ("weft-tea", "weft-brew")[at]


def test_a_manifest_that_hides_a_host(folder: Path) -> None:
    package = json.loads(Path("weft-tea.json").read_bytes())
    Path("lie.json").write_text(json.dumps(package | {"hosts": ["*.tea.example"]}))
    assert "uses the host 'files.example:8443', which its manifest does not declare" in refused("lie.json")
    Path("lie.json").write_text(json.dumps(package | {"hosts": "all"}))
    assert "hosts of lie.json must be a list of texts" in refused("lie.json")


def test_files_that_are_no_packages(folder: Path) -> None:
    wheel({"../out.py": "x"})
    assert "has a file outside of itself: ../out.py" in refused(WHEEL)
    wheel({"weft_brew-0.1.dist-info/entry_points.txt": "[console_scripts]\na = b:c\n"})
    assert "brings neither connectors nor blocks" in refused(WHEEL)
    wheel({"weft_brew/brew.json": json.dumps(TEA | {"base_url": 7})})
    assert "connector weft_brew/brew.json is not valid: /base_url" in refused(WHEEL)
    Path("a.whl").write_bytes(b"none")
    assert "a.whl is no wheel" in refused("a.whl")
    Path("a.json").write_text("{")
    assert "a.json is neither a wheel nor JSON" in refused("a.json")
    Path("a.json").write_text('{"format": "other"}')
    assert "format of a.json is 'other'" in refused("a.json")
    assert "none.json cannot be read" in refused("none.json")
    assert "it is another file" in refused("weft-tea.json", "--sha256", "0" * 64)
    assert "needs its hash: --sha256" in refused("http://127.0.0.1:9/tea.json")
    assert "cannot be read" in refused("http://127.0.0.1:9/tea.json", "--sha256", "0" * 64)


async def test_a_json_package_is_added_to_the_server(weft: Callable[..., Any], folder: Path) -> None:
    done = await weft("add", "weft-tea", "--yes")
    assert done.exit_code == 0 and "Installed weft-tea 1.2 on the server." in done.output
    assert (await weft("connector", "list")).stdout == "connector.tea  Tea  2 operations\n"


def test_a_template_is_written_once(folder: Path) -> None:
    for name, said in {"Tea": "small letters", "9_tea": "begin with a letter", "slack": "weft has a connector"}.items():
        done = run("new-connector", name)
        assert done.exit_code == 1 and said in done.output and not Path(f"weft-{name}").exists()
    assert run("new-connector", "green_tea").exit_code == 0
    assert "weft-green-tea is not empty" in run("new-connector", "green_tea").output
    assert run("connector", "check", "weft-green-tea/weft_green_tea/green_tea.json").exit_code == 0
    assert 'green_tea = "weft_green_tea"' in Path("weft-green-tea/pyproject.toml").read_text()
