"""`file`: makes a file of a value."""

from __future__ import annotations

import asyncio
import base64
import binascii
import csv
import io
from typing import Any

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FILLED, TypedParams, invalid, param, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render


class _Params(TypedParams):
    name: str = param("Name", "With a suffix, such as report.csv.", required=True, pattern=FILLED)
    content: Any = param(
        "Content",
        "Text is stored unchanged, other values as JSON. A CSV table is a list of objects or lists.",
        required=True,
        rows=6,
    )
    format: str = param(
        "Format",
        "How the content is written.",
        default="text",
        choices={"text": "Text", "csv": "CSV table", "base64": "Base64"},
    )
    media_type: str | None = param("Media type", "Leave empty to use that of the suffix.", advanced=True)


@block_type(
    type="file",
    title="File",
    description="Makes a file of text or a table.",
    category="action",
    params=_Params.json_schema,
    output=shape(type={"enum": ["file"]}, id="string", name="string", media_type="string", size="integer"),
    sentence="{name} | Make a file",
    icon="file",
)
async def block(ctx: StepContext) -> Done:
    """Output: the file. Raises BlockError: params_invalid, file_too_large, file_not_stored."""
    params = _Params(ctx.params)
    content = await asyncio.to_thread(_bytes, params.format, params.content)
    return Done((await ctx.files.save(content, params.name, params.media_type)).value)


def _bytes(format: str, content: Any) -> bytes:
    if format == "csv":
        return _table(content)
    if format == "base64":
        try:
            return base64.b64decode(str(content), validate=True)
        except binascii.Error as error:
            raise invalid(f"the content is not base64: {error}") from None
    return render(content).encode("utf-8", "replace")


def _table(rows: Any) -> bytes:
    """The columns of objects are those of all rows, in the order in which they come. A text that a spreadsheet would
    calculate gets an apostrophe before it."""
    if not isinstance(rows, list):
        raise invalid("a CSV table needs a list of objects or of lists")
    out = io.StringIO(newline="")
    write = csv.writer(out)
    columns = list(dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row))
    if columns:
        write.writerow([_cell(column) for column in columns])
    for row in rows:
        if isinstance(row, dict):
            cells = [row.get(column) for column in columns]
        else:
            cells = row if isinstance(row, list) else [row]
        write.writerow([_cell(cell) for cell in cells])
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    shown = render(value)
    return f"'{shown}" if isinstance(value, str) and shown[:1] in ("=", "+", "-", "@", "\t", "\r") else shown
