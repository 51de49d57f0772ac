"""What holds for every document, however bad."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from compiler import plan as plans
from compiler.catalog import Catalog
from compiler.compile import DEFAULT_LIMITS, Compiled, compile_document
from compiler.diagnostics import CODES
from compiler.imports import accept, sim
from tests.fuzz.documents import triggers

COMPILE_CPU_S_MAX = 1.0
COMPILE_BYTES_MAX = 50 << 20


def check(data: bytes, catalog: Catalog, trigger: str | None = None) -> Compiled:
    """Compile; assert that it is quick and small, that it either gives a plan or says why not, and that it points at
    places."""
    with bounded():
        document = accept(data, lambda: {"sim": sim}, limits=DEFAULT_LIMITS, catalog=catalog)
        compiled = compile_document(document, catalog, trigger=trigger)
    errors = [finding for finding in compiled.diagnostics if finding.severity == "error"]
    assert (compiled.plan is None) == bool(errors)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    for finding in compiled.diagnostics:
        assert finding.code in CODES and finding.message
        assert leads_somewhere(value, finding.pointer), (finding.code, finding.pointer)
        orjson.dumps([finding.pointer, finding.message, finding.hint, finding.block, finding.field])
    assert all(finding.hint for finding in errors)
    if compiled.plan is not None:
        assert plans.decode(plans.encode(compiled.plan)).hash == compiled.plan.hash
    return compiled


def check_all(data: bytes, catalog: Catalog) -> Compiled:
    """The same for two more of its triggers, if there is a plan at all."""
    compiled = check(data, catalog)
    if compiled.plan is not None:
        for trigger in [other for other in triggers(orjson.loads(data)) if other != compiled.plan.trigger][:2]:
            check(data, catalog, trigger)
    return compiled


@contextmanager
def bounded() -> Iterator[None]:
    """What happens in here takes at most a second of this thread's processor, and 50 MB."""
    before, began = _peak_bytes(reset=True), time.thread_time()
    yield
    took_s = time.thread_time() - began
    assert took_s < COMPILE_CPU_S_MAX, f"it took {took_s:.2f} s"
    grown = _peak_bytes() - before
    assert grown < COMPILE_BYTES_MAX, f"it took {grown >> 20} MB"


def _peak_bytes(reset: bool = False) -> int:
    """The most memory this process had: ever, or since the last `reset`, where the system can forget it."""
    try:
        if reset:
            _CLEAR.write_text("5")
        status = _STATUS.read_text()
    except OSError:  # not Linux, or not allowed: then only growth beyond the highest peak is seen
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def leads_somewhere(document: Any, pointer: str) -> bool:
    """Is this a JSON pointer to a place in the document, or to a member that is missing in one? A block or a tool of an
    agent without `params` has missing ones all the same."""
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
            return n == len(parts) - 1 or (
                parts[0] == "blocks" and part == "params" and (n == 2 or parts[n - 2] == "tools")
            )
    return True
