"""What holds for every document, however bad."""

from __future__ import annotations

import time
from typing import Any

import orjson

from compiler import plan as plans
from compiler.catalog import Catalog
from compiler.compile import Compiled, compile_document
from compiler.diagnostics import CODES

COMPILE_CPU_S_MAX = 1.0


def check(data: bytes, catalog: Catalog) -> Compiled:
    """Compile; assert that it is quick, that it either gives a plan or says why not, and that it points at places."""
    began = time.process_time()
    compiled = compile_document(data, catalog)
    assert time.process_time() - began < COMPILE_CPU_S_MAX
    errors = [finding for finding in compiled.diagnostics if finding.severity == "error"]
    assert (compiled.plan is None) == bool(errors)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = None
    for finding in compiled.diagnostics:
        assert finding.code in CODES and finding.message
        assert leads_somewhere(document, finding.pointer), (finding.code, finding.pointer)
        orjson.dumps([finding.pointer, finding.message, finding.hint, finding.block, finding.field])
    assert all(finding.hint for finding in errors)
    if compiled.plan is not None:
        assert plans.decode(plans.encode(compiled.plan)).hash == compiled.plan.hash
    return compiled


def leads_somewhere(document: Any, pointer: str) -> bool:
    """Is this a JSON pointer to a place in the document, or to a member that is missing in one?"""
    if pointer == "":
        return True
    if not pointer.startswith("/"):
        return False
    at = document
    parts = pointer[1:].split("/")
    for n, part in enumerate(parts):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        else:
            return n == len(parts) - 1
    return True
