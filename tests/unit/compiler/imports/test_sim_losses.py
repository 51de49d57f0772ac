"""What Sim's workflows become, and that each loss is said at its block, with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.imports import Imported
from executor.blocks.types.registry import Registry
from tests.unit.compiler.imports.sim_documents import block, imported, said

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("params", "cron"),
    [
        ({"scheduleType": "minutes", "minutesInterval": "10"}, "*/10 * * * *"),
        ({"scheduleType": "hourly", "hourlyMinute": "5"}, "5 * * * *"),
        ({"scheduleType": "daily", "dailyTime": "09:30"}, "30 9 * * *"),
        ({"dailyTime": "09:30"}, "30 9 * * *"),
        ({"scheduleType": "weekly", "weeklyDay": "FRI", "weeklyDayTime": "18:00"}, "0 18 * * FRI"),
        ({"scheduleType": "monthly", "monthlyDay": "1", "monthlyTime": "00:15"}, "15 0 1 * *"),
        ({"scheduleType": "custom", "cronExpression": "0 9 * * MON-FRI"}, "0 9 * * MON-FRI"),
    ],
)
def test_a_schedule_keeps_its_times(params: Json, cron: str) -> None:
    result = imported(block("s", "schedule", timezone="Europe/Berlin", **params))
    assert result.document["blocks"]["s"]["type"] == "schedule"
    assert result.document["blocks"]["s"]["params"] == {"cron": cron, "tz": "Europe/Berlin"}
    assert result.diagnostics == []


def test_a_schedule_whose_times_cannot_be_read_does_not_run() -> None:
    result = imported(block("s", "schedule", name="Nightly", scheduleType="daily", dailyTime="late"))
    assert said(result) == [('Schedule "Nightly": Its times cannot be read.', "Set the cron expression of the block.")]
    assert errors(result) == [("required", "/blocks/s/params/cron")]


def test_a_webhook_stays_one() -> None:
    hook = block("h", "generic_webhook", name="Orders", requireAuth=True, token="t", secretHeaderName="X-Secret")
    after = block("a", "function", code="return <orders.total> + <orders.body.tax>", language="javascript")
    result = imported(hook, after, wires="h a")
    assert result.document["blocks"]["h"]["type"] == "webhook"
    assert result.document["blocks"]["h"]["params"] == {"auth": "token"}
    assert result.document["blocks"]["a"]["params"]["code"] == "return <orders.body.total> + <orders.body.tax>"
    assert [message for message, _ in said(result)] == [
        'Webhook "Orders": It gets a new URL.',
        'Webhook "Orders": Its token is not imported.',
    ]
    assert "instead of the header X-Secret" in said(result)[1][1]
    open_to_all = imported(block("h", "generic_webhook"))
    assert open_to_all.document["blocks"]["h"]["params"] == {"auth": "none"}
    assert "webhook_open" in [found.code for found in checked(open_to_all)]


def test_a_workflow_block_runs_a_workflow() -> None:
    call = block("w", "workflow", name="Pay", workflowId="6c0b1e9a", inputMapping='{"sum": "<start.n>"}')
    after = block("a", "function", code="return <pay.result.paid>")
    result = imported(block("start", "start_trigger"), call, after, wires="start w; w a")
    made = result.document["blocks"]["w"]
    assert (made["type"], made["params"]) == ("run_workflow", {"workflow": "6c0b1e9a", "input": {"sum": "<start.n>"}})
    assert result.document["blocks"]["a"]["params"]["code"] == "return <pay.paid>"
    assert said(result) == [
        (
            'Workflow "Pay": It runs the Sim workflow "6c0b1e9a".',
            "Import that workflow, too, and choose it in this block.",
        )
    ]


def test_a_router_keeps_the_texts_of_its_routes() -> None:
    routes = [{"id": "r1", "title": "Sales", "value": "wants to buy"}, {"id": "r2", "title": "Help", "value": ""}]
    router = block("r", "router_v2", name="Sort", context="<start.text>", routes=routes, model="gpt-4o")
    after = block("a", "function", code="return <sort.selectedRoute>")
    result = imported(block("start", "start_trigger"), router, after, wires="start r; r/router-r1 a")
    made = result.document["blocks"]["r"]
    assert (made["type"], made["params"]) == (
        "model_router",
        {
            "model": "openai:gpt-4o",
            "context": "<start.text>",
            "routes": [{"id": "r1", "title": "Sales", "description": "wants to buy"}, {"id": "r2", "title": "Help"}],
        },
    )
    assert result.document["blocks"]["a"]["params"]["code"] == "return <sort.route>"
    assert said(result) == []


def test_notes_stay() -> None:
    result = imported(block("start", "start_trigger"), block("n", "note", content="# Read me"), wires="start n")
    assert result.document["blocks"]["n"]["params"] == {"text": "# Read me"}
    assert (result.document["edges"], result.diagnostics) == ([], [])


@pytest.mark.parametrize(
    ("params", "policy"),
    [
        (
            {"retries": "4", "retryDelayMs": "200", "retryMaxDelayMs": 5000},
            {"max_attempts": 5, "initial_ms": 200, "max_ms": 5000},
        ),
        ({"retries": 0}, {"max_attempts": 1}),
        ({}, {"max_attempts": 1}),
        ({"retries": 3, "method": "POST"}, {"max_attempts": 1}),
        ({"retries": 3, "method": "POST", "retryNonIdempotent": True}, {"max_attempts": 4}),
    ],
)
def test_the_retries_of_a_request(params: Json, policy: Json) -> None:
    result = imported(block("start", "start_trigger"), block("h", "api", url="http://e.org", **params), wires="start h")
    assert result.document["blocks"]["h"]["policy"] == {"retry": policy}
    assert result.diagnostics == [] and errors(result) == []


def test_a_timeout_that_is_too_long_is_reduced() -> None:
    result = imported(block("start", "start_trigger"), block("h", "api", url="http://e.org", timeout="600000"))
    assert result.document["blocks"]["h"]["params"]["timeout_s"] == 300
    assert said(result) == [('API "h": Its timeout is reduced to 300 s.', "Use a callback for longer requests.")]


def test_an_error_is_text_where_text_is_meant() -> None:
    """Sim's `<f.error>` is a text, ours an object."""
    f = block("f", "function", name="F", code="return 1")
    tell = block("t", "response", dataMode="json", data='{"why": "It failed: <f.error>", "code": "<f.error.code>"}')
    result = imported(block("start", "start_trigger"), f, tell, wires="start f; f/error t")
    body = result.document["blocks"]["t"]["params"]["body"]
    assert body == {"why": "It failed: <f.error.message>", "code": "<f.error.code>"}
    assert checked(result) == []


def test_python_remains_python() -> None:
    f = block("f", "function", name="Sum", code="return sum(<start.data>)", language="python")
    result = imported(block("start", "start_trigger"), f, wires="start f")
    assert result.document["blocks"]["f"]["params"] == {"code": "return sum(<start.data>)", "language": "python"}
    assert said(result) == []


def test_shell_is_not_run_as_javascript() -> None:
    f = block("f", "function", name="Sum", code="wc -l", language="shell")
    result = imported(block("start", "start_trigger"), f, wires="start f")
    made = result.document["blocks"]["f"]
    assert (made["params"], made["description"]) == ({"code": ""}, "wc -l")
    assert errors(result) == [("required", "/blocks/f/params/code")]
    ((message, hint),) = said(result)
    assert message == 'Function "Sum": Its code is Shell, which does not run here. The code is kept in the notes.'
    assert hint == "Rewrite it in JavaScript or Python."


def test_settings_without_a_counterpart_are_named() -> None:
    result = imported(block("h", "api", name="Ask", url="http://e.org", proxyUrl="http://p", extra=[], stream=False))
    assert said(result) == [
        ('API "Ask": These settings are not imported: proxyUrl.', "Check whether the block needs them.")
    ]


def checked(result: Imported) -> list[Any]:
    return compile_document(result.document, Registry.load()).diagnostics


def errors(result: Imported) -> list[tuple[str, str]]:
    return [(found.code, found.pointer) for found in checked(result) if found.severity == "error"]
