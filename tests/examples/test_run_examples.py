"""Every example runs from the command line against a real server, and the command line tells how it went."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.conftest import Weft

FOLDER = Path(__file__).parents[2] / "examples"


def example(name: str) -> str:
    return str(FOLDER / f"{name}.json")


def link_in(text: str) -> str:
    found = re.search(r"http://\S+/resume/\S+", text)
    assert found is not None, text
    return found[0]


def run_id(text: str) -> str:
    return re.search(r"run (\S+)", text)[1]  # type: ignore[index]


@pytest.fixture
def quick_demo(tmp_path: Path) -> str:
    """The durable demo, with one second for its thirty."""
    document: dict[str, Any] = json.loads(Path(example("durable-demo")).read_text())
    assert document["blocks"]["sleep"]["params"] == {"seconds": 30}
    document["blocks"]["sleep"]["params"] = {"seconds": 1}
    path = tmp_path / "durable-demo.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_durable_demo(weft: Weft, quick_demo: str) -> None:
    ran = weft("run", quick_demo, "--follow", "--input", '{"to": "ada@example.com"}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) is not None
    assert "wait.opened" in ran.stderr


def test_small_expense_passes_by_itself(weft: Weft) -> None:
    ran = weft("run", example("expense-approval"), "--follow", "--input", '{"amount": 12.5}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"amount": 12.5, "decision": "automatic", "decided_by": "the rule"}


def test_large_expense_waits_for_the_manager(weft: Weft) -> None:
    saved = weft("deploy", example("expense-approval"), "--name", "expenses")
    assert saved.returncode == 0, saved.stderr
    assert saved.stdout.startswith("expenses version 1 (new, ")
    assert "unchanged" in weft("deploy", example("expense-approval"), "--name", "expenses").stdout

    ran = weft("run", "expenses", "--follow", "--input", '{"amount": 420}')
    assert ran.returncode == 3, ran.stderr
    link, run = link_in(ran.stderr), run_id(ran.stderr)
    assert link in weft("inbox").stdout
    assert [wait["link"] for wait in json.loads(weft("inbox", "--json").stdout) if wait["run"] == run] == [link]
    why = weft("why", run, "ask")
    assert why.returncode == 0
    assert why.stdout.startswith("ask  waiting")

    unknown = weft("answer", link, "--action", "perhaps")
    assert unknown.returncode == 4
    done = weft("answer", link, "--action", "approve", "--field", "note=Have a good trip", "--by", "Grace")
    assert done.returncode == 0, done.stderr
    late = weft("answer", link, "--action", "reject")
    assert late.returncode == 4
    assert "answered" in late.stderr

    followed = weft("events", run, "--follow", "--json")
    assert followed.returncode == 0
    events = [json.loads(line) for line in followed.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "run.finished"
    assert weft("events", run, "--json").stdout == followed.stdout
    assert weft("events", run, "--after", str(len(events) - 1)).stdout.count("\n") == 1
    assert events[-1]["data"]["status"] == "succeeded"
    assert f"{run}  succeeded" in weft("runs", "--workflow", "expenses").stdout
    assert weft("cancel", run).returncode == 4


def test_why_says_what_a_run_failed_of(weft: Weft) -> None:
    call = {"type": "http", "params": {"url": "${WEFT_BASE_URL}/demo/nowhere"}}
    blocks = {"start": {"type": "start"}, "call": call, "end": {"type": "set", "params": {"value": 1}}}
    edges = [{"source": "start", "target": "call"}, {"source": "call", "target": "end"}]
    ran = weft("run", "-", "--follow", input=json.dumps({"format": "weft/1", "blocks": blocks, "edges": edges}))
    assert ran.returncode == 1, ran.stderr
    told = weft("why", run_id(ran.stderr)).stdout.splitlines()
    assert told[0].startswith("failed at call: http_status: GET http://")
    assert told[1:] == ["end  pending", "  the run has ended"]


def test_a_report_on_weekdays(weft: Weft) -> None:
    saved = weft("deploy", example("daily-report"))
    assert saved.returncode == 0, saved.stderr
    listed = weft("cron", "ls", "--workflow", "daily-report")
    assert re.fullmatch(
        r"daily-report:morning  0 7 \* \* MON-FRI  Europe/Berlin  on  next \d{4}-\d\d-\d\d 07:00\n", listed.stdout
    )
    started = weft("cron", "run", "daily-report:morning")
    assert started.returncode == 0, started.stderr
    assert weft("events", run_id(started.stdout), "--follow").returncode == 0
    assert f"{run_id(started.stdout)}  succeeded" in weft("runs", "--workflow", "daily-report").stdout
    shown = json.loads(weft("cron", "show", "daily-report:morning", "--json").stdout)
    assert (len(shown["upcoming_ms"]), shown["fires"][0]["run"]) == (5, run_id(started.stdout))

    assert "  off  next -" in weft("cron", "disable", "daily-report:morning").stdout
    assert "  on  next " in weft("cron", "enable", "daily-report:morning").stdout
    refused = weft("cron", "rm", "daily-report:morning")
    assert refused.returncode == 4 and "belongs to a block" in refused.stderr

    own = ("cron", "add", "daily-report", "--trigger", "morning", "--id", "nine", "--input", '{"team": "x"}')
    made = weft(*own, "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--overlap", "queue", "--catch-up", "none", "--json")
    assert made.returncode == 0, made.stderr
    spec = json.loads(made.stdout)
    assert (spec["tz"], spec["overlap"], spec["catch_up"], spec["input"]) == (
        "Asia/Tokyo",
        "queue",
        "none",
        {"team": "x"},
    )
    wrong = weft(*own, "--cron", "0 25 * * *")
    assert wrong.returncode == 4 and "bad hour" in wrong.stderr
    assert weft("cron", "rm", "nine").returncode == 0
    assert weft("cron", "rm", "nine").returncode == 4


def test_orders_that_are_signed(weft: Weft) -> None:
    """With openssl, as the guide does it."""
    assert weft("deploy", example("signed-orders")).returncode == 0
    assert "/hooks/signed-orders:order" in weft("hooks", "ls").stdout
    shown = weft("hooks", "show", "signed-orders:order")
    secret = re.search(r"secret    (\S+)", shown.stdout)
    assert secret is not None, shown.stderr
    answers = {
        amount: post_signed(weft.url, secret[1], json.dumps({"item": "paper", "amount": amount}))
        for amount in (12, 420)
    }
    assert answers == {
        12: (201, {"item": "paper", "decision": "accepted"}),
        420: (202, {"item": "paper", "decision": "needs review"}),
    }
    status, problem = post_signed(weft.url, secret[1], '{"item": "paper"}')
    assert (status, problem["code"]) == (422, "input_invalid")
    rotated = weft("hooks", "rotate", "signed-orders:order")
    assert rotated.stdout.startswith("whsec_")
    assert post_signed(weft.url, secret[1], '{"item": "pen", "amount": 1}')[0] == 401
    assert post_signed(weft.url, rotated.stdout.strip(), '{"item": "pen", "amount": 1}')[0] == 201
    outcomes = [
        one["outcome"]
        for one in json.loads(weft("hooks", "show", "signed-orders:order", "--json").stdout)["deliveries"]
    ]
    assert outcomes == ["started", "signature_invalid", "input_invalid", "started", "started"]


def post_signed(url: str, secret: str, body: str) -> tuple[int, Any]:
    at_s = str(int(time.time()))
    digest = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", secret],
        input=f"{at_s}.{body}",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[-1]
    headers = {"Content-Type": "application/json", "X-Weft-Timestamp": at_s, "X-Weft-Signature": f"v1={digest}"}
    answer = httpx.post(f"{url}/hooks/signed-orders:order", content=body, headers=headers, timeout=30)
    return answer.status_code, answer.json()


def test_a_missing_input_is_refused_before_anything_runs(weft: Weft) -> None:
    ran = weft("run", example("expense-approval"), "--input", "{}")
    assert ran.returncode == 4
    assert "amount" in ran.stderr


def test_review_loop_asks_again_with_the_feedback(weft: Weft) -> None:
    ran = weft("run", example("review-loop"), "--follow")
    assert ran.returncode == 3, ran.stderr
    run, first = run_id(ran.stderr), link_in(ran.stderr)
    assert weft("answer", first, "--action", "revise", "--field", "note=shorter").returncode == 0
    second = next_link(weft, run, first)
    assert weft("answer", first, "--action", "pass").returncode == 4
    assert weft("answer", second, "--action", "pass").returncode == 0
    log = weft("events", run, "--follow", "--json").stdout
    events = [json.loads(line) for line in log.splitlines()]
    drafts = [event["data"]["output"]["result"]["text"] for event in events if drafted(event)]
    assert drafts == [
        "Draft 1 about durable workflows.",
        "Draft 2 about durable workflows. With the feedback in mind: shorter",
    ]
    assert events[-1]["data"]["status"] == "succeeded"


def drafted(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "node.succeeded" and event["block"] == "draft")


def next_link(weft: Weft, run: str, before: str) -> str:
    """The link of the wait that follows the answered one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        links = [wait["link"] for wait in json.loads(weft("inbox", "--json").stdout) if wait["run"] == run]
        if links and links != [before]:
            return str(links[0])
        time.sleep(0.02)
    raise AssertionError("the run never asked again")


def test_parallel_fanout_keeps_the_order(weft: Weft) -> None:
    ran = weft("run", example("parallel-fanout"), "--follow", "--input", '{"cities": ["Rome", "Oslo"]}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["result"] == {"count": 2, "all_good": True, "cities": ["Rome", "Oslo"]}


def test_error_handling_retries_and_falls_back(weft: Weft) -> None:
    ran = weft("run", example("error-handling"), "--follow")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["flaky"], report["attempts"]) == (200, 3)
    assert report["broken"]["used"] == "yesterday's answer"
    assert "503" in report["broken"]["because"]
    assert ran.stderr.count("retry.scheduled") == 3


def test_nested_counts_for_itself(weft: Weft) -> None:
    ran = weft("run", example("nested"), "--follow", "--input", '{"teams": ["a", "bbb", "cc"], "rounds": 4}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["result"] == {"team": "bbb", "points": 30}
    assert "play@teams[2]/rounds#3" in ran.stderr


def test_child_runs_and_their_question_seen_from_above(weft: Weft) -> None:
    ran = weft("run", example("child-run"), "--follow")
    assert ran.returncode == 3, ran.stderr
    run, link = run_id(ran.stderr), link_in(ran.stderr)
    assert "Order printer for 420 EUR?" in ran.stderr
    children = json.loads(weft("runs", "--parent", run, "--json").stdout)
    assert sorted(child["status"] for child in children) == ["succeeded", "waiting"]
    assert weft("answer", link, "--action", "refuse", "--by", "Grace").returncode == 0
    log = weft("events", run, "--follow", "--json").stdout
    last = json.loads(log.splitlines()[-1])
    assert last["data"]["status"] == "succeeded"
    assert last["data"]["output"]["result"]["ordered"] == ["paper"]
    assert [one["by"] for one in last["data"]["output"]["result"]["all"]] == ["the rule", "Grace"]


def test_clearing_the_cache(weft: Weft) -> None:
    cached = {
        "format": "weft/1",
        "name": "cached",
        "blocks": {
            "start": {"type": "start"},
            "work": {"type": "function", "params": {"code": "return 1"}, "policy": {"cache": {}}},
        },
        "edges": [{"source": "start", "target": "work"}],
    }
    assert weft("run", "-", "--follow", input=json.dumps(cached)).returncode == 0
    assert weft("cache", "clear", "--workflow", "other").stdout == "0 results deleted.\n"
    assert weft("cache", "clear").stdout == "1 result deleted.\n"


def test_a_failing_run_exits_with_1_and_a_cancelled_one_with_2(weft: Weft, tmp_path: Path) -> None:
    failing = {
        "format": "weft/1",
        "name": "failing",
        "blocks": {
            "start": {"type": "start"},
            "boom": {"type": "function", "params": {"code": "throw new Error('boom')"}},
        },
        "edges": [{"source": "start", "target": "boom"}],
    }
    ran = weft("run", "-", "--follow", input=json.dumps(failing))
    assert ran.returncode == 1
    assert "boom" in ran.stderr
    assert ran.stdout == ""

    weft("deploy", example("expense-approval"), "--name", "cancelled")
    arguments = ("run", "cancelled", "--input", '{"amount": 900}', "--key", "k")
    run = json.loads(weft(*arguments, "--json").stdout)["run"]
    cancelled = weft("cancel", run, "--reason", "a test")
    assert cancelled.returncode == 0, cancelled.stderr
    ran = weft(*arguments, "--follow")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert run_id(ran.stderr) == run
    assert "a test" in ran.stderr


def test_the_same_key_is_the_same_run(weft: Weft) -> None:
    weft("deploy", example("nested"))
    runs = {json.loads(weft("run", "nested", "--key", "k1", "--json").stdout)["run"] for _ in range(2)}
    assert len(runs) == 1


def test_an_unknown_workflow_is_reported(weft: Weft) -> None:
    ran = weft("run", "nothing-of-that-name")
    assert ran.returncode == 4
    assert "nothing-of-that-name" in ran.stderr
