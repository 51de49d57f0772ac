"""Lines of the log as JSON: what they have, and what they do not."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.process.observe import Doing, begin
from executor.open.engine import Engine
from server.logs import JsonFormatter
from server.reach import SettingsError
from server.settings import load_settings

SECRET = 'quoted"secret\\value'


def line(message: str, *args: Any, **fields: Any) -> dict[str, Any]:
    record = logging.LogRecord("weft.test", logging.WARNING, __file__, 1, message, args, fields.get("exc_info"))
    found: dict[str, Any] = json.loads(JsonFormatter([SECRET]).format(record))
    return found


def test_a_line_is_an_object() -> None:
    found = line("run %s: %d lost", "a", 3)
    assert found.pop("at").endswith("+00:00")
    assert found == {"level": "warning", "logger": "weft.test", "message": "run a: 3 lost"}


def test_a_secret_that_json_would_spell_otherwise_is_not_in_it() -> None:
    try:
        raise ValueError(f"it was {SECRET}")
    except ValueError:
        found = line(f"the value {SECRET} at /resume/abcdefgh", exc_info=sys.exc_info())
    assert "quoted" not in json.dumps(found) and "defgh" not in json.dumps(found)
    assert "ValueError" in found["error"]


@pytest.mark.parametrize("path", ["resume/", "callbacks/", "hooks/", "forms/signup/", "chat/help/"])
def test_what_gives_access_to_a_page_is_not_in_it(path: str) -> None:
    assert "secretpart" not in line(f"GET http://127.0.0.1:8765/{path}xyz-secretpart?a=1 failed")["message"]


async def test_what_is_under_way_is_named() -> None:
    begin(Doing("r1", "expense", "send@fan[2]", 3))
    found = line("no answer")
    assert (found["run"], found["workflow"], found["node"], found["attempt"]) == ("r1", "expense", "send@fan[2]", 3)


async def test_what_a_block_logs_has_its_run_and_node(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonFormatter([]).format(record)))

    document = {
        "format": "weft/1",
        "name": "mails",
        "blocks": {
            "start": {"type": "start"},
            "send": {"type": "email", "params": {"to": "a@example.org", "subject": "hi", "body": "x"}},
        },
        "edges": [{"source": "start", "target": "send"}],
    }
    handler, log = Kept(), logging.getLogger("executor.blocks.types.email")
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)
    try:
        submitted = await engine.submit(document, input={})
        await engine.wait_finished(submitted.run, 30)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    [found] = [each for each in lines if each.get("node") == "send"]
    assert (found["run"], found["workflow"], found["attempt"]) == (submitted.run, "mails", 1)


def test_the_format_is_a_setting(tmp_path: Path) -> None:
    assert load_settings({"WEFT_LOG_FORMAT": "json", "WEFT_DATA": str(tmp_path)}).log_format == "json"
    with pytest.raises(SettingsError, match="WEFT_LOG_FORMAT must be text or json, not 'xml'"):
        load_settings({"WEFT_LOG_FORMAT": "xml", "WEFT_DATA": str(tmp_path)})
