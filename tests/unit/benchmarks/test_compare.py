from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks import compare, durable
from benchmarks.compare import NotInstalled
from benchmarks.sample import ROOT


def functions(module: str) -> set[str]:
    """Without an import: the other systems are not installed where tests run."""
    tree = ast.parse((ROOT / "benchmarks" / "peers" / f"{module}.py").read_bytes())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("module", compare.PEERS.values())
def test_each_other_system_runs_every_workload(module: str) -> None:
    assert set(compare.TARGETS) <= functions(module)


def test_others_are_in_the_sequences_of_weft() -> None:
    benchmarks = compare.beside(durable.WORKLOADS, Path("/peers/python"))
    assert list(benchmarks) == ["chain", "fan", "loop", "runs", "resume"]
    for section, [one] in benchmarks.items():
        assert one.ours == durable.WORKLOADS[section][0].ours
        assert list(one.others) == list(compare.PEERS)
        for program in one.others.values():
            assert program.python == "/peers/python"
            assert program.call.endswith(f":{section}")
    bounds = [one.others_target and one.others_target.bound for [one] in benchmarks.values()]
    assert bounds == [3, 10, 10, 10, 10]


def test_a_missing_system_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "PACKAGES", ("pytest", "no-such-package-of-weft"))
    with pytest.raises(NotInstalled, match=r"no-such-package-of-weft is not installed") as caught:
        compare.versions(Path(sys.executable))
    assert "make peers" in str(caught.value)
    assert "--require-hashes -r requirements-peers.lock" in str(caught.value)


def test_versions_are_those_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "PACKAGES", ("pytest",))
    assert compare.versions(Path(sys.executable)) == {"pytest": pytest.__version__}


def test_the_extra_pins_what_the_lock_has() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["peers"]
    assert set(compare.PACKAGES) <= {one.partition("==")[0] for one in extra}  # the others are for examples/compare
    locked = (ROOT / "requirements-peers.lock").read_text().splitlines()
    for one in extra:
        assert f"{one} \\" in locked


def test_others_are_in_no_lock_that_serves_or_tests() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-build.lock"):
        packages = {line.partition("==")[0] for line in (ROOT / name).read_text().splitlines() if line[:1].isalpha()}
        assert not packages & set(compare.PACKAGES)
