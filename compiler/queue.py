"""Settings about the queue. Their texts may read the input of a run: when they are filled in, no block has run yet."""

from __future__ import annotations

from compiler.diagnostics import Report
from compiler.document import SettingsDoc
from compiler.references import find, normalize, parse


def check_queue(settings: SettingsDoc, report: Report) -> None:
    if settings.fair is not None:
        _check_key(settings.fair, "/settings/fair", report)
    for index, limit in enumerate(settings.limits):
        if limit.of == "block":
            message = "A limit in the settings is of runs. That of a block is in its policy."
            report.add("limit_of_block", f"/settings/limits/{index}/of", message)
        _check_key(limit.key, f"/settings/limits/{index}/key", report)
    for index, rate in enumerate(settings.rates):
        _check_key(rate.key, f"/settings/rates/{index}/key", report)


def _check_key(text: str, pointer: str, report: Report) -> None:
    for found in find(text):
        shown = found.key if found.env else f"<{found.text}>"
        parsed = None if found.env else parse(found.text)
        if parsed is None and not found.env and "??" in found.text:
            report.add("reference_default_invalid", pointer, f"The default in {shown} is not JSON.")
        elif parsed is None or normalize(str(parsed.segments[0])) != "input":
            report.add("setting_reference", pointer, f"{shown} cannot be read here: no block has run yet.")
