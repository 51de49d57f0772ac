"""The compiled guest on disk: code that we run, so it is read back only when it is certainly ours."""

import os
import stat
import sys
from pathlib import Path

import pytest
import wasmtime

from executor.blocks.sandbox import engine as artifact
from executor.blocks.sandbox.engine import engine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="file modes are those of Unix")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "weft"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A guest that compiles in a millisecond instead of a second."""
    (tmp_path / "_guest.wasm").write_bytes(wasmtime.wat2wasm('(module (func (export "eval_code")))'))
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time the guest was really compiled. The compiler stays the real one."""
    times: list[int] = []
    real = wasmtime.Module.__init__

    def counted(self: wasmtime.Module, engine: wasmtime.Engine, wasm: str | bytes) -> None:
        times.append(len(wasm))
        real(self, engine, wasm)

    monkeypatch.setattr(wasmtime.Module, "__init__", counted)
    return times


def test_it_is_compiled_once_and_read_back(folder: Path, compiled: list[int]) -> None:
    artifact.load(engine(), folder)
    module = artifact.load(engine(), folder)
    assert len(compiled) == 1
    assert "eval_code" in {item.name for item in module.exports}
    (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("harm", ["truncated", "flipped", "empty", "group may write"])
def test_a_file_that_is_not_as_we_left_it_is_not_run(folder: Path, compiled: list[int], harm: str) -> None:
    artifact.load(engine(), folder)
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    if harm == "truncated":
        file.write_bytes(content[:-1])
    elif harm == "flipped":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif harm == "empty":
        file.write_bytes(b"")
    else:
        file.chmod(0o620)
    artifact.load(engine(), folder)
    assert len(compiled) == 2
    artifact.load(engine(), folder)
    assert len(compiled) == 2  # it was written again


@pytest.mark.usefixtures("small")
def test_a_folder_others_may_enter_is_not_used(folder: Path, compiled: list[int]) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    artifact.load(engine(), folder)
    artifact.load(engine(), folder)
    assert len(compiled) == 2
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_a_link_instead_of_the_folder_is_not_used(folder: Path, tmp_path: Path, compiled: list[int]) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    folder.parent.mkdir()
    os.symlink(real, folder)
    artifact.load(engine(), folder)
    assert list(real.iterdir()) == []
    assert len(compiled) == 1


@pytest.mark.usefixtures("small")
def test_without_a_place_to_keep_it_it_is_compiled(tmp_path: Path, compiled: list[int]) -> None:
    (tmp_path / "file").write_text("in the way")
    artifact.load(engine(), None)
    artifact.load(engine(), tmp_path / "file")
    assert len(compiled) == 2


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert artifact.cache_folder() == tmp_path / "weft" / "guest"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert artifact.cache_folder() == tmp_path / "home" / ".cache" / "weft" / "guest"


@pytest.mark.usefixtures("small")
def test_a_cache_folder_that_others_have_made_is_no_hindrance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The browser that tests fetch lies in `weft` too. Each server compiled the guest again then: 0.5 s a start."""
    (tmp_path / "weft").mkdir(mode=0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = artifact.cache_folder()
    assert folder is not None
    artifact.load(engine(), folder)
    assert [file.suffix for file in folder.iterdir()] == [".cwasm"]
