"""Checks for stored secrets read where none can be: in params whose schema does not have `x-weft: secret`.

A warning, since a document that was stored before the secret is compiled again when it runs: the block that reads the
secret fails, and only if it is reached. An error, where the URL of a request begins with one: it decides which server
gets the request, and parsers put it into messages.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from compiler.catalog import Catalog
from compiler.check import pointer_to
from compiler.diagnostics import Report
from compiler.needs import names_of
from compiler.references import ENV
from compiler.schema import checker_of
from compiler.wiring import Wiring

# What a URL is dialled by: all in front of its path. A backslash is read as a slash by some; `${NAME}` may stand in it.
_AUTHORITY = re.compile(r"\s*(?:[^/?#\\:]*:)?(?:[/\\]{2})?[^/?#\\]*")


def check_secrets(wiring: Wiring, catalog: Catalog, stored: Collection[str], report: Report) -> None:
    """Report one finding for each place. `stored` are the names of stored secrets."""
    if not stored:
        return
    for id, block in wiring.blocks.items():
        spec = wiring.specs[id]
        if spec is None:
            continue
        checker = checker_of(spec)
        permitted = {f"/params{place}" for place in checker.secret_places(block.params)}
        for place, url in checker.urls(block.params):
            found = _AUTHORITY.match(url)
            for name in dict.fromkeys(ENV.findall(found[0]) if found is not None else ()):
                if name in stored:
                    message = f"{wiring.called(id)}: The secret {name} cannot be in the scheme, host or port of a URL."
                    report.add("secret_in_address", pointer_to(id, "params") + place, message, block=id)
        for pointer, name in dict.fromkeys(names_of(msgspec.to_builtins(block), catalog, stored)):
            if name in stored and pointer not in permitted:
                message = f"{wiring.called(id)}: The secret {name} cannot be used here; the block fails."
                report.add("secret_misplaced", pointer_to(id) + pointer, message, block=id)
