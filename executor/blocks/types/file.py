"""`file`: makes a file of a value, or reads what is in one."""

from __future__ import annotations

import asyncio
import base64
import binascii
import csv
import io
from typing import Any, Final

from compiler.catalog import Finding, Params
from executor.blocks.types import workbook
from executor.blocks.types.declared import block_type
from executor.blocks.types.file_reading import READ_AS, READ_BYTES_MAX, read
from executor.blocks.types.params import FILLED, TypedParams, invalid, param, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.files import NOT_A_FILE_HINT, is_file
from executor.kernel.values.payload import render

_MAKE: Final = {"operation": ["make"]}
_READ: Final = {"operation": ["read"]}
_FIELDS: Final = {"operation": ["read"], "read_as": ["fields"]}


class _Params(TypedParams):
    operation: str = param(
        "Operation",
        "Make a file, or read what is in one or in a text.",
        default="make",
        weft="literal",
        choices={"make": "Make a file", "read": "Read a file or a page"},
    )
    name: str | None = param("Name", "With a suffix, such as report.csv.", when=_MAKE, pattern=FILLED, needed=_MAKE)
    content: Any = param(
        "Content",
        "To make a file: text is stored unchanged, other values as JSON; a table is a list of objects or lists. "
        "To read: a file or a text.",
        required=True,
        rows=6,
    )
    format: str = param(
        "Format",
        "How the content is written.",
        when=_MAKE,
        default="text",
        choices={"text": "Text", "csv": "CSV table", "excel": "Excel workbook", "base64": "Base64"},
    )
    media_type: str | None = param("Media type", "Leave empty to use that of the suffix.", when=_MAKE, advanced=True)
    read_as: str = param("Read", "What to get of it.", when=_READ, default="text", choices=READ_AS)
    sheet: str | None = param(
        "Sheet", "Of an Excel workbook. Leave empty for the first one.", pattern=FILLED, advanced=True
    )
    select: dict[str, Any] | None = param(
        "Parts",
        'Names with CSS selectors, such as {"title": "h1"} or {"links": {"css": "a", "get": "href", "all": true}}.',
        when=_FIELDS,
        widget="json",
        needed=_FIELDS,
    )


def _check(params: Params) -> tuple[Finding, ...]:
    if params.get("operation") != "read":
        return () if params.get("name") else (Finding("required", "/name", "Name is required."),)
    lacks = params.get("read_as") == "fields" and not params.get("select")
    return (Finding("required", "/select", "Parts is required."),) if lacks else ()


def _output(params: Params) -> dict[str, Any]:
    if params.get("operation") == "read":
        return shape(result={})
    return shape(type={"enum": ["file"]}, id="string", name="string", media_type="string", size="integer")


@block_type(
    type="file",
    title="File",
    description="Makes a file of text or a table, or reads a file or a page.",
    category="action",
    params=_Params.json_schema,
    output_from=_output,
    check=_check,
    sentence="{name} | {read_as} | Make a file",
    icon="file",
)
async def block(ctx: StepContext) -> Done:
    """Output: the file, or {"result"}. Raises BlockError: params_invalid, file_too_large, file_not_stored,
    file_not_found, and those of `file_reading.read` and `workbook`."""
    params = _Params(ctx.params)
    if params.operation == "read":
        return Done({"result": await _read(ctx, params)})
    if not params.name:
        raise invalid("name is required")
    content, media_type = params.content, params.media_type
    if params.format == "excel":
        data = await asyncio.to_thread(workbook.write_rows, _rows(content), params.sheet, ctx.files.redact)
        media_type = media_type or workbook.MEDIA_TYPE
    else:
        data = await asyncio.to_thread(_bytes, params.format, content)
    return Done((await ctx.files.save(data, params.name, media_type)).value)


async def _read(ctx: StepContext, params: _Params) -> Any:
    given = params.content
    if is_file(given):
        data = await ctx.files.read(given, READ_BYTES_MAX)
    elif isinstance(given, str):
        data, given = given.encode("utf-8", "replace"), {"name": "content"}
    elif params.read_as in ("json", "table"):
        return given  # it is read already, such as the body of a response
    else:
        raise invalid("content must be a file or a text", NOT_A_FILE_HINT)
    if params.read_as == "table" and workbook.is_workbook(data):
        return await asyncio.to_thread(workbook.read_rows, data, params.sheet)
    return await asyncio.to_thread(read, data, given, params.read_as, params.select or {})


def _bytes(format: str, content: Any) -> bytes:
    if format == "csv":
        return _csv(_rows(content))
    if format == "base64":
        try:
            return base64.b64decode(str(content), validate=True)
        except binascii.Error as error:
            raise invalid(f"the content is not base64: {error}") from None
    return render(content).encode("utf-8", "replace")


def _rows(content: Any) -> list[list[Any]]:
    """Return the cells. The columns of objects are those of all rows, in the order in which they come."""
    if not isinstance(content, list):
        raise invalid("a table needs a list of objects or of lists")
    columns = list(dict.fromkeys(key for row in content if isinstance(row, dict) for key in row))
    rows = [list(columns)] if columns else []
    for row in content:
        if isinstance(row, dict):
            rows.append([row.get(column) for column in columns])
        else:
            rows.append(row if isinstance(row, list) else [row])
    return rows


def _csv(rows: list[list[Any]]) -> bytes:
    """A text that a spreadsheet would calculate gets an apostrophe before it."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows([_cell(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    shown = render(value)
    return f"'{shown}" if isinstance(value, str) and shown[:1] in ("=", "+", "-", "@", "\t", "\r") else shown
