"""An output against the block's own output schema, before anything of it is recorded."""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from compiler.plan import Node
from executor.errors import BadRequest, BlockError
from executor.values.schema import Matches, violations

# A check takes about 10 us for each value in it: what is larger is checked beside the event loop.
ASIDE_BYTES: Final = 16 * 1024


async def check_output(node: Node, output: bytes, matches: Matches) -> None:
    """`output` is JSON. Raises BlockError(output_invalid) naming the first place that does not fit; another attempt may
    give another output if the block asks the world."""
    schema = node.output_schema
    if schema is None:
        return
    value = orjson.loads(output)
    try:
        if len(output) > ASIDE_BYTES:
            found = await asyncio.to_thread(violations, schema, value, matches)
        else:
            found = violations(schema, value, matches)
    except BadRequest as error:  # the check itself did not come to an end
        raise BlockError(error.message, code="output_invalid", retryable=False, hint=error.hint) from error
    if found:
        where = f" at {found[0]['pointer']}" if found[0]["pointer"] else ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise BlockError(
            f"the output does not match the output_schema of the block{where}: {found[0]['message']}{more}",
            code="output_invalid",
            retryable=node.effect != "none",
        )
