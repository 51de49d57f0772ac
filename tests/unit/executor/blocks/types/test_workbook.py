"""A file block reads and makes Excel workbooks."""

from __future__ import annotations

import io
import sys
import zipfile
from datetime import datetime, time, timedelta
from typing import Any

import openpyxl
import pytest

from executor.blocks.types import workbook
from executor.errors import BlockError
from weft import testing

ROWS = [
    {"name": "Tea", "price": 3.5, "new": True, "note": None},
    {"name": "=1+1", "price": 2**60, "new": False, "note": {"a": 1}},
]


def book(rows: list[list[Any]], *sheets: str) -> bytes:
    made = openpyxl.Workbook()
    for name in sheets:
        made.create_sheet(name)
    sheet = made.worksheets[-1]
    for row in rows:
        sheet.append(row)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


async def through(params: dict[str, Any]) -> dict[str, Any]:
    """Make a file with these params, and read it as a table, in one run."""
    read = {"operation": "read", "content": "<make>", "read_as": "table"}
    if "sheet" in params:
        read["sheet"] = params["sheet"]
    blocks = {"make": {"type": "file", "params": params}, "read": {"type": "file", "params": read}}
    edges = [{"source": "start", "target": "make"}, {"source": "make", "target": "read"}]
    document = {"format": "weft/1", "name": "flow", "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges}
    async with testing.engine() as engine:
        view = await testing.finish(engine, (await engine.submit(document)).run)
    assert view.status == "succeeded", view.error
    outputs = {node.block: node.output for node in view.nodes}
    return {"file": outputs["make"], "rows": outputs["read"]["result"]}


async def test_a_table_is_made_and_read_again() -> None:
    found = await through({"name": "prices.xlsx", "format": "excel", "content": ROWS, "sheet": "Prices"})
    assert found["file"]["media_type"] == workbook.MEDIA_TYPE
    assert found["rows"] == [ROWS[0], {"name": "=1+1", "price": str(2**60), "new": False, "note": '{"a":1}'}]


def test_values_and_sheets() -> None:
    rows: list[list[Any]] = [
        [None, None, None, None],
        ["day", "at", "took", None],
        [datetime(2027, 1, 2), time(8, 30), timedelta(hours=1), 5],
    ]
    rows += [[None] * 4, [datetime(2027, 1, 2, 8), "text", 7, None]]
    data = book(rows, "Other", "Last")
    assert workbook.read_rows(data, None) == []
    assert workbook.read_rows(data, "Last") == [
        {"day": "2027-01-02", "at": "08:30:00", "took": 3600.0},
        {"day": "2027-01-02T08:00:00", "at": "text", "took": 7},
    ]
    with pytest.raises(BlockError, match="no sheet 'Prices'") as caught:
        workbook.read_rows(data, "Prices")
    assert caught.value.hint == "It has: Sheet, Other, Last"


def test_texts_stay_texts() -> None:
    data = workbook.write_rows([["=SUM(A1)", "a\x00b", "+key"]], None, lambda text: text.replace("key", "***"))
    (row,) = openpyxl.load_workbook(io.BytesIO(data)).active.iter_rows()
    assert [(cell.value, cell.data_type) for cell in row] == [("=SUM(A1)", "s"), ("ab", "s"), ("+***", "s")]
    for rows, sheet, message in (([["x" * 32_768]], None, "32,768"), ([], "a/b", "name of a sheet")):
        with pytest.raises(BlockError, match=message):
            workbook.write_rows(rows, sheet, str)


def test_what_is_too_large_or_broken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/workbook.xml", bytes(workbook.UNPACKED_BYTES_MAX + 1))
    whole = book([["a", "b"]] * 10)
    broken = [b"PK\x03\x04 and more", bomb.getvalue(), whole[:-40]]
    codes = []
    for data in broken:
        with pytest.raises(BlockError) as caught:
            workbook.read_rows(data, None)
        codes.append(caught.value.code)
    assert codes == ["file_unreadable", "file_too_large", "file_unreadable"]
    monkeypatch.setattr(workbook, "CELLS_MAX", 15)
    with pytest.raises(BlockError, match="15 cells"):
        workbook.read_rows(whole, None)


async def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setitem(sys.modules, "openpyxl.cell", None)
    ran = await testing.run_block("file", {"name": "a.xlsx", "format": "excel", "content": []})
    assert ran.error is not None and ran.error["code"] == "excel_missing" and "openpyxl" in str(ran.error["hint"])
