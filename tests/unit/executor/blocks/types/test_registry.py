import json
import logging
import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from compiler.catalog import BlockSpec, Catalog
from executor.blocks.types import break_, condition, loop, note, parallel, registry, router, start, variables
from executor.blocks.types import set as set_
from executor.blocks.types.registry import Registry
from executor.errors import NotFound
from executor.kernel.handler.base import Block, Done, StepContext

OURS: list[Block] = [m.block for m in (start, set_, variables, condition, router, loop, parallel, break_, note)]


class Thing:
    def __init__(self, type: str = "thing", title: str = "Thing") -> None:
        self.spec = BlockSpec(type=type, title=title, description="", category="action")

    async def run(self, ctx: StepContext) -> Done:
        return Done()


class Dist:
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """installed({"package": {"name": object, or an error to raise at import}}): what entry points find."""

    def install(packages: dict[str, dict[str, Any]]) -> None:
        points = []
        for package, blocks in packages.items():
            for name, thing in blocks.items():
                module = f"weft_test_{package}_{name}"
                if not isinstance(thing, Exception):
                    made = ModuleType(module)
                    made.block = thing  # type: ignore[attr-defined]
                    monkeypatch.setitem(sys.modules, module, made)
                point = EntryPoint(name, f"{module}:block", registry.GROUP)
                vars(point)["dist"] = Dist(package)
                points.append(point)
        monkeypatch.setattr(
            registry, "entry_points", lambda group: sorted(points, key=lambda one: (one.name, one.value))
        )

    return install


def test_what_is_installed_and_what_is_passed(installed: Any) -> None:
    installed({"one": {"thing": Thing()}, "two": {"other": Thing("other")}})
    mine = Thing("other", "Mine")
    loaded = Registry.load([mine])
    assert loaded.types() == ["other", "thing"]
    assert loaded.handler("other") is mine
    assert loaded.get("nope") is None


def test_a_broken_package_is_named_and_left_out(installed: Any, caplog: pytest.LogCaptureFixture) -> None:
    installed({"good": {"thing": Thing()}, "broken": {"gone": ImportError(), "bad": object()}})
    with caplog.at_level(logging.ERROR):
        assert Registry.load().types() == ["thing"]
    assert len(caplog.records) == 2
    assert all("of broken" in record.getMessage() for record in caplog.records)


def test_a_type_used_by_another_package(installed: Any, caplog: pytest.LogCaptureFixture) -> None:
    first = Thing()
    installed({"a": {"x": first}, "b": {"y": Thing()}})
    with caplog.at_level(logging.ERROR):
        assert Registry.load().handler("thing") is first
    assert "'thing' of b is skipped: a has a block of the same name" in caplog.text


def test_sentinels_are_run_by_their_container() -> None:
    loaded = Registry(OURS)
    for container in ("loop", "parallel"):
        for end in ("start", "end"):
            assert loaded.handler(f"{container}:{end}") is loaded.handler(container)
    with pytest.raises(NotFound, match="no block type 'nope'"):
        loaded.handler("nope")


def test_syntax_is_checked_by_a_sandbox_made_when_it_is_needed() -> None:
    class Checker:
        made = 0

        def __init__(self) -> None:
            Checker.made += 1

        def check_syntax(self, source: str, kind: str) -> str | None:
            return f"{kind}: bad" if source == "(" else None

    loaded: Catalog = Registry(OURS, Checker)
    assert Checker.made == 0
    assert loaded.check_syntax("(", "code") == "code: bad"
    assert loaded.check_syntax("1", "expression") is None
    assert Checker.made == 1
    assert Registry(OURS, Checker()).check_syntax("(", "expression") == "expression: bad"
    assert Registry(OURS).check_syntax("(", "expression") is None


def test_the_catalogue_is_json() -> None:
    catalogue = Registry(OURS).catalogue()
    assert json.loads(json.dumps(catalogue)) == catalogue
    assert [entry["type"] for entry in catalogue][:2] == ["start", "break"]
    assert catalogue[-1]["type"] == "note"
    by_type = {entry["type"]: entry for entry in catalogue}
    assert by_type["loop"]["container"] == "loop" and by_type["loop"]["handles"] == ["out", "body"]
    assert by_type["start"]["trigger"] is True
    for entry in catalogue:
        assert set(entry) == {
            "type", "title", "description", "category", "params", "handles", "container", "trigger", "output", "effect",
            "runners", "attempts", "timeout_ms", "sentence", "icon",
        }  # fmt: skip


def test_specs_of_our_blocks_are_sound() -> None:
    import jsonschema

    for one in OURS:
        jsonschema.Draft202012Validator.check_schema(one.spec.params)
        assert one.spec.effect == "none"
        for schema in (one.spec.output, one.spec.output_from and one.spec.output_from({})):
            if schema:
                jsonschema.Draft202012Validator.check_schema(schema)
