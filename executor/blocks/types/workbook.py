"""Tables in Excel workbooks (.xlsx), with openpyxl, of the extra `excel`."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from executor.blocks.sandbox import MIB
from executor.blocks.types.params import invalid
from executor.errors import BlockError
from executor.kernel.process.extras import install
from executor.kernel.values.payload import render

MEDIA_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
UNPACKED_BYTES_MAX: Final = 128 * MIB
CELLS_MAX: Final = 500_000  # about three seconds
TEXT_CHARS_MAX: Final = 32_767  # of a cell, by Excel
NUMBER_MAX: Final = 10**15  # Excel has 15 digits
_NOT_IN_XML: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def is_workbook(data: bytes) -> bool:
    return data.startswith(b"PK\x03\x04")


def read_rows(data: bytes, sheet: str | None) -> list[dict[str, Any]]:
    """Return the rows of a sheet, the first one without a name. Its first row that is not empty has the names of the
    columns. Formulas have the value that was calculated last, dates are ISO 8601. Raises BlockError: excel_missing,
    file_unreadable, file_too_large, params_invalid."""
    openpyxl = _openpyxl()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > UNPACKED_BYTES_MAX:
            raise _too_large(f"{UNPACKED_BYTES_MAX:,} bytes when it is unpacked, it has {size:,}")
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        with closing(book):
            names = [each.title for each in book.worksheets]
            if sheet is not None and sheet not in names:
                raise invalid(f"the workbook has no sheet {sheet[:80]!r}", f"It has: {', '.join(names)[:500]}")
            return _rows(book[names[0] if sheet is None else sheet].iter_rows(values_only=True))
    except BlockError:
        raise
    except Exception as error:  # openpyxl passes on what its parts raise for a file that is broken
        message = f"the file cannot be read: an Excel workbook (.xlsx) expected: {str(error)[:200]}"
        raise BlockError(message, code="file_unreadable", retryable=False) from error


def _rows(found: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    names: list[str] | None = None
    rows: list[dict[str, Any]] = []
    cells = 0
    for row in found:
        cells += len(row)
        if cells > CELLS_MAX:
            raise _too_large(f"{CELLS_MAX:,} cells in a sheet")
        if all(value is None for value in row):
            continue
        if names is None:
            names = ["" if value is None else render(_value(value)) for value in row]
        else:
            rest = [None] * (len(names) - len(row))  # a row ends with its last cell
            rows.append({name: _value(value) for name, value in zip(names, [*row, *rest], strict=False) if name})
    return rows


def _value(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value


def write_rows(rows: list[list[Any]], sheet: str | None, redact: Callable[[str], str]) -> bytes:
    """Return a workbook with one sheet. A text stays a text, also one that begins like a formula; `redact` removes
    secrets from it. Raises BlockError: excel_missing, params_invalid."""
    openpyxl = _openpyxl()
    book = openpyxl.Workbook(write_only=True)
    try:
        made = book.create_sheet(sheet or "Sheet1")
    except ValueError:
        raise invalid(f"{str(sheet)[:80]!r} cannot be the name of a sheet: it has one of []:*?/\\") from None
    for row in rows:
        made.append([_cell(openpyxl.cell.WriteOnlyCell(made), value, redact) for value in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _cell(cell: Any, value: Any, redact: Callable[[str], str]) -> Any:
    exact = isinstance(value, bool) or (isinstance(value, (int, float)) and abs(value) < NUMBER_MAX)
    if value is None or exact:
        cell.value = value
    else:
        text = _NOT_IN_XML.sub("", redact(render(value)))
        if len(text) > TEXT_CHARS_MAX:
            raise invalid(f"a cell of a workbook has at most {TEXT_CHARS_MAX:,} characters, this has {len(text):,}")
        cell.value = text
        cell.data_type = "s"
    return cell


def _openpyxl() -> Any:
    try:
        import openpyxl.cell
    except ImportError:
        hint = f"{install('excel')}; then restart it"
        message = "Excel workbooks need a library that is not installed on this server"
        raise BlockError(message, code="excel_missing", retryable=False, hint=hint) from None
    return openpyxl


def _too_large(what: str) -> BlockError:
    return BlockError(f"a workbook may have {what}", code="file_too_large", retryable=False)
