"""Decides if a person must approve a call of an agent (`approve: if`). The result of the expression counts only if it
compares values of one type: `"60 EUR" > 50` is false, and would let the call through. In doubt, approval is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from executor.blocks.sandbox.simple import Unsure, compile_simple
from executor.kernel.handler.base import Context
from executor.kernel.values.payload import Bound

NAME: Final = "\0args"
# The arguments are passed as a value and never become a part of the program. Besides its result, the program returns if
# the expression read something that is missing, or a text or an object that is not a number, and which arguments it
# read.
PROGRAM: Final = """(() => {
  let missing = false, loose = false
  const read = new Set()
  const watched = (value, name) => {
    if (value === null || value === undefined || (typeof value === 'number' && Number.isNaN(value))) missing = true
    if (typeof value === 'string' && Number.isNaN(Number(value))) loose = true
    if (typeof value !== 'object' || value === null) return value
    return new Proxy(value, { get(of, key) {
      if (key === Symbol.toPrimitive) loose = true
      if (typeof key === 'symbol' || (!Object.hasOwn(of, key) && key in of)) return of[key]
      if (name === undefined) read.add(key)
      return watched(of[key], name ?? key)
    } })
  }
  const says = ((args) => Boolean(%s
))(watched(__v["\\u0000args"]))
  return [says, missing, loose, [...read]]
})()"""
_ORDERS: Final = re.compile(r"(?<!=)[<>]")
_TEXTS: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_ARGUMENTS: Final = re.compile(r"(?<![\w$.])args(?![\w$])")


async def is_asked(ctx: Context, condition: Bound, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return True if a person must approve the call. Raises the errors of `ctx.evaluate`."""
    values = {**condition.values, NAME: dict(arguments)}
    [[says, missing, loose, read]] = await ctx.evaluate(
        [replace(condition, source=PROGRAM % condition.source, values=values)]
    )
    if says or missing:
        return True
    alike = _compares_alike(condition, values)
    if alike is not None:
        return not alike
    # An expression that only the sandbox can compute: nothing is known of its comparisons.
    fields = schema.get("properties") or {}
    of_any_type = any(not isinstance(fields.get(name), dict) or "type" not in fields[name] for name in read)
    return of_any_type or (loose and _ORDERS.search(_TEXTS.sub("", condition.source)) is not None)


def _compares_alike(condition: Bound, values: Mapping[str, Any]) -> bool | None:
    """Return True if the expression compares only values of one type, or None if it is too complex to analyse."""
    compute = compile_simple(_ARGUMENTS.sub('__v["\\\\u0000args"]', condition.source), alike=True)
    if compute is None:
        return None
    try:
        compute(values, condition.texts)
    except Unsure:
        return False
    return True
