"""`weft debug` and `weft test`: a stored run of a durable function against the code that is here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from executor.blocks.types.python import load_module
from executor.open.engine import Engine
from server.cli.common import FAILED
from server.settings import Settings

FLOW = """
import weft

add = 0
extra = False

@weft.step(effect="none")
async def charge(order: str, amount: float) -> float:
    if amount > 9:
        raise ValueError("it's too much")
    return amount + 1

async def both(order: str, amount: float) -> float:
    for n in range(2):
        amount = await charge(order, amount + add)
    return amount

@weft.durable
async def order(order: str, amount: float) -> str:
    paid = await both(order, amount)
    if extra:
        await charge(order, 1)
    courier = await weft.signal("courier", type=str)
    return f"{paid:g} {courier}"

async def branch(name: str) -> None:
    if name == "waits":
        await weft.signal("never")
    await charge(name, 1)

@weft.durable
async def branches() -> None:
    await weft.gather(["waits", "ends"], branch)

@weft.durable
async def undone(order: str) -> None:
    paid = await charge(order, 3)
    try:
        await weft.sleep(days=1)
    except weft.Cancelled:
        paid += add
        await charge(order, paid)
        raise
"""
LINES = {text: n for n, text in enumerate(FLOW.splitlines(), 1)}
LINE = LINES['    courier = await weft.signal("courier", type=str)']
UNDO = LINES["        await charge(order, paid)"]
CHARGE = LINES["        amount = await charge(order, amount + add)"]


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "weft_debugged", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "weft_debugged.py"
    path.write_text(FLOW)
    return path


@pytest.fixture
def module(flow: Path) -> ModuleType:
    return load_module(str(flow))


@pytest.fixture
def settings(settings: Settings, flow: Path) -> Settings:
    return msgspec.structs.replace(settings, functions=(str(flow),))


async def run_of(engine: Engine, module: ModuleType, amount: float = 3, courier: str | None = None) -> str:
    run = (await engine.submit(module.order, order="A-17", amount=amount)).run
    await engine.wait_finished(run, 30)
    if courier is not None:
        await engine.signal(run, "courier", courier)
        await engine.wait_finished(run, 30)
    return run


Weft = Callable[..., Any]


async def test_it_stops_where_the_journal_ends_with_the_values_of_the_code(
    weft: Weft, engine: Engine, module: ModuleType
) -> None:
    run = await run_of(engine, module)
    shown = await weft("debug", run, input="p paid, order\nq\n")
    assert shown.exit_code == 0, shown.output
    assert f"weft_debugged.py({LINE})order()" in shown.output
    assert "(5.0, 'A-17')" in shown.output
    assert f'1  weft_debugged.py:{CHARGE}    `weft_debugged.charge(amount=3.0, order="A-17")` -> 4.0' in shown.output
    assert "3  weft_debugged.py:" in shown.output and "the wait `courier` is open" in shown.output


async def test_it_stops_after_an_event_inside_of_what_the_function_calls(
    weft: Weft, engine: Engine, module: ModuleType
) -> None:
    run = await run_of(engine, module)
    records = await engine.store.read_events(run)
    first = next(record.seq for record in records if record.type == "step.finished")
    shown = await weft("debug", run, "--to", str(first), input="p amount\nup\nq\n")
    assert f"weft_debugged.py({CHARGE})both()" in shown.output and "(Pdb) 4.0" in shown.output
    assert ")order()" in shown.output
    assert "is not in the journal" in shown.output


async def test_of_branches_it_shows_one_that_waits(weft: Weft, engine: Engine, module: ModuleType) -> None:
    run = (await engine.submit(module.branches)).run
    await engine.wait_finished(run, 30)
    shown = await weft("debug", run, input="p name\nq\n")
    assert "(Pdb) 'waits'" in shown.output
    shown = await weft("debug", run, "--step", input="n\np name\nq\n")
    assert "(Pdb) 'waits'" in shown.output and "Leaving" not in shown.output


async def test_it_steps_from_the_first_line(weft: Weft, engine: Engine, module: ModuleType) -> None:
    run = await run_of(engine, module, courier="Ada")
    shown = await weft("debug", run, "--step", input="n\nn\nn\np courier\nc\n")
    assert "-> paid = await both(order, amount)" in shown.output
    assert "-> if extra:" in shown.output
    assert 'order returned "5 Ada"' in shown.output
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize("change", [{"add": 1}, {"extra": True}])
async def test_a_call_that_is_another_one_stops_at_its_line(
    change: dict[str, Any], weft: Weft, engine: Engine, module: ModuleType
) -> None:
    run = await run_of(engine, module)
    vars(module).update(change)
    shown = await weft("debug", run, input="p add, extra\nq\n", standalone_mode=False)
    assert shown.return_value == FAILED
    assert f"({change.get('add', 0)}, {'extra' in change})" in shown.output
    assert "when this run first came here" in shown.output and f"run {run}, event" in shown.output
    assert "weft_debugged.py(" in shown.output


async def test_it_shows_what_undoes_a_cancelled_run(weft: Weft, engine: Engine, module: ModuleType) -> None:
    run = (await engine.submit(module.undone, order="A-17")).run
    await engine.wait_finished(run, 30)
    await engine.cancel(run)
    assert (await engine.wait_finished(run, 30)).status == "cancelled"
    shown = await weft("debug", run, "--step", input=f"b {UNDO}\nc\np paid\nc\n")
    assert "-> await charge(order, paid)" in shown.output and "(Pdb) 4.0" in shown.output
    assert "undone returned null" in shown.output
    test = await weft("test", run)
    names: dict[str, Any] = {}
    exec(test.stdout, names)
    names[f"test_undone_does_what_it_did_in_run_{run}"]()
    module.add = 1  # type: ignore[attr-defined]  # the file has it
    with pytest.raises(AssertionError, match=r"call 3 is `weft_debugged\.charge\(amount=5"):
        names[f"test_undone_does_what_it_did_in_run_{run}"]()


async def test_it_shows_where_the_code_raised(weft: Weft, engine: Engine, module: ModuleType) -> None:
    run = await run_of(engine, module, amount=10)
    shown = await weft("debug", run, input="p amount\nq\n")
    assert f"weft_debugged.py({CHARGE})both()" in shown.output
    assert "it's too much" in shown.output


async def test_a_test_from_a_run_passes_and_fails_with_other_calls(
    weft: Weft, engine: Engine, module: ModuleType, flow: Path
) -> None:
    runs = (
        await run_of(engine, module, courier="it's '''quoted'''"),
        await run_of(engine, module),
        await run_of(engine, module, amount=10),
    )
    tests = []
    for run in runs:
        made = await weft("test", run, flow.name)
        names: dict[str, Any] = {}
        exec(made.stdout, names)
        tests.append(names[f"test_order_does_what_it_did_in_run_{run}"])
    for test in tests:
        test()
    module.add = 1  # type: ignore[attr-defined]  # the file has it
    for test in tests:
        with pytest.raises(AssertionError, match=r"call 1 is `weft_debugged\.charge\(amount="):
            test()
    shown = await weft("test", runs[0], flow.name)
    assert "so the test fails: weft_debugged.py:" in shown.stderr


async def test_what_cannot_be_debugged_says_why(
    weft: Weft, engine: Engine, module: ModuleType, hello: dict[str, Any], tmp_path: Path
) -> None:
    drawn = (await engine.submit(hello, input={})).run
    run = await run_of(engine, module)
    (tmp_path / "other.py").write_text("import weft\n")
    for arguments, said in {
        (drawn,): "is not one of a durable function",
        (run, "none.py"): "There is no file 'none.py'",
        (run, "other.py"): "other.py has no durable function 'weft_debugged.order'",
        (run, "--to", "2"): "has not begun the durable function there",
        ("nope",): "there is no run 'nope'",
    }.items():
        shown = await weft("debug", *arguments)
        assert shown.exit_code == 1 and said in shown.output
