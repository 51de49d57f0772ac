"""Stored secrets that a document reads where none can be: in params whose schema does not say `x-weft: secret`.

A warning, since a document that was stored before the secret is compiled again when it runs: the block that reads the
secret fails, and only if it is reached.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from compiler.catalog import Catalog
from compiler.check import pointer_to
from compiler.diagnostics import Report
from compiler.needs import names_of
from compiler.schema import checker_of
from compiler.wiring import Wiring


def check_secrets(wiring: Wiring, catalog: Catalog, stored: Collection[str], report: Report) -> None:
    """`stored`: the names of stored secrets. One finding for each place."""
    if not stored:
        return
    for id, block in wiring.blocks.items():
        spec = wiring.specs[id]
        if spec is None:
            continue
        permitted = {f"/params{place}" for place in checker_of(spec).secret_places(block.params)}
        for pointer, name in dict.fromkeys(names_of(msgspec.to_builtins(block), catalog, stored)):
            if name in stored and pointer not in permitted:
                message = f"{wiring.called(id)}: The secret {name} cannot be used here; the block fails."
                report.add("secret_misplaced", pointer_to(id) + pointer, message, block=id)
