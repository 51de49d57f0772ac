"""Every example runs from the command line against a real server, and the command line tells how it went."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.examples.conftest import Weft
from tests.support.command import Ran
from tests.support.python_guest import built_python
from tests.support.server import SyncServerProcess

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


def test_poll_goes_along_the_chain_of_its_runs(weft: Weft) -> None:
    ran = weft("run", example("poll"), "--follow")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"order": "A-17", "looks": 3}
    after = re.findall(r"^continued as run (\S+)$", ran.stderr, re.MULTILINE)
    assert len(after) == len(set(after)) == 2
    assert f"continues run {after[0]}" in weft("events", after[1]).stdout


def test_durable_demo(weft: Weft, quick_demo: str) -> None:
    ran = weft("run", quick_demo, "--follow", "--input", '{"to": "ada@example.com"}')
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) is not None
    assert "wait.opened" in ran.stderr


def test_python_code(weft: Weft) -> None:
    built_python()
    ran = weft("run", example("python-code"), "--follow")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"text": "The total is 50.00.", "sums": {"ink": "30.20", "paper": "19.80"}}


@contextmanager
def with_a_model(folder: Path) -> Iterator[Weft]:
    """A server as `make serve` starts it: with the scripts of all examples."""
    server = SyncServerProcess(folder, {}, options=("--dev-model",))
    try:
        yield Weft(server.url)
    finally:
        server.kill()


def test_the_scripted_model_ends_with_the_server_that_started_it(tmp_path: Path) -> None:
    for end in (SyncServerProcess.kill, SyncServerProcess.stop):
        server = SyncServerProcess(tmp_path, {}, options=("--dev-model",))
        (child,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        assert "dev-model" in Path(f"/proc/{child}/cmdline").read_text()
        end(server)
        until = time.monotonic() + 60
        while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_text():
            assert time.monotonic() < until, "it is still there"
            time.sleep(0.05)


def test_an_agent_asks_before_it_refunds(tmp_path: Path) -> None:
    with with_a_model(tmp_path) as weft:
        ran = weft("run", example("agent"), "--follow")
        assert ran.returncode == 3, ran.stderr
        link, run = link_in(ran.stderr), run_id(ran.stderr)
        done = weft("answer", link, "--action", "approve", "--field", "amount=15", "--by", "Grace")
        assert done.returncode == 0, done.stderr
        followed = weft("events", run, "--follow", "--json")
        events = [json.loads(line) for line in followed.stdout.splitlines()]
        assert events[-1]["data"]["status"] == "succeeded", events[-1]
        output = httpx.get(f"{weft.url}/api/runs/{run}", trust_env=False).json()["output"]
        assert output["answer"] == "Order 1042 is late. I have asked for a refund."
        assert [call["arguments"] for call in output["tools"]] == [{"number": "1042"}, {"number": "1042", "amount": 15}]
        assert sum(event["type"] == "step.finished" for event in events) == 6


def test_a_model_chooses_who_gets_a_message(tmp_path: Path) -> None:
    with with_a_model(tmp_path) as weft:

        def write(message: str) -> Ran:
            return weft("run", example("support-triage"), "--follow", "--input", json.dumps({"message": message}))

        routed = {}
        for message in ("The export shows an error.", "When do you open?"):
            ran = write(message)
            assert ran.returncode == 0, ran.stderr
            output = json.loads(ran.stdout)
            routed[output["route"]] = (output["ticket"], output["decision"])
        assert routed == {"fault": (200, "none"), "question": ("none", "none")}

        waits = write("I was charged twice.")
        assert waits.returncode == 3, waits.stderr
        link, run = link_in(waits.stderr), run_id(waits.stderr)
        assert weft("answer", link, "--action", "refund", "--by", "Grace").returncode == 0
        assert weft("events", run, "--follow").returncode == 0
        output = httpx.get(f"{weft.url}/api/runs/{run}", trust_env=False).json()["output"]
        assert (output["route"], output["decision"], output["tokens"]["input_tokens"]) == ("payment", "refund", 120)


def test_a_spreadsheet_becomes_a_summary(tmp_path: Path) -> None:
    with with_a_model(tmp_path) as weft:
        sheet = FOLDER / "files" / "sales.csv"
        ran = weft("run", example("spreadsheet-summary"), "--file", f"sheet={sheet}", "--follow")
        assert ran.returncode == 0, ran.stderr
        output = json.loads(ran.stdout)
        assert output["summary"].startswith("Six sales from January to March")
        amount = output["columns"][3]
        assert (amount["column"], round(amount["sum"], 2), amount["most"]) == ("amount", 6954.0, 1802.45)
        assert output["columns"][2] == {"column": "product", "values": 6, "different": 2}
        table = httpx.get(f"{weft.url}/api/files/{output['table']['id']}", trust_env=False)
        assert table.text.splitlines()[0] == "column,values,different,sum,least,most"
        assert "columns.csv" in table.headers["content-disposition"]
        missing = weft("run", example("spreadsheet-summary"), "--file", "sheet=/none.csv")
        assert missing.returncode == 4 and "no file" in missing.stderr


def test_a_model_reads_a_receipt(tmp_path: Path) -> None:
    with with_a_model(tmp_path) as weft:
        receipt = FOLDER / "files" / "receipt.png"
        ran = weft("run", example("receipt-summary"), "--file", f"receipt={receipt}", "--follow")
        assert ran.returncode == 0, ran.stderr
        output = json.loads(ran.stdout)
        assert output["receipt"]["total"] == 21.8 and len(output["receipt"]["items"]) == 3
        assert output["receipt"]["note"] == f"Seen: image/png, {receipt.stat().st_size} bytes, 320 x 330."
        sales = FOLDER / "files" / "sales.csv"
        other = weft("run", example("receipt-summary"), "--file", f"receipt={sales}", "--follow")
        assert other.returncode == 3, other.stderr  # a person is asked


def test_a_chat_remembers_what_was_said(tmp_path: Path) -> None:
    with with_a_model(tmp_path) as weft:
        assert weft("deploy", example("chat")).returncode == 0
        with httpx.Client(base_url=weft.url, trust_env=False, timeout=60) as client:
            page = urlsplit(client.get("/api/webhooks/chat:chat:chat").json()["url"]).path
            talk = client.get(page).headers["location"]
            for n, message in enumerate(("Which tea has no caffeine?", "Which of them is cheaper?"), 1):
                sent = client.post(talk, data={"message": message, "n": str(n)}, headers={"accept": "application/json"})
                assert sent.status_code == 202, sent.text
                assert client.get(f"{talk}/{n}/events").text.rstrip().endswith("event: end\ndata: {}")
            turns = client.get(talk, headers={"accept": "application/json"}).json()["turns"]
    assert [turn["answer"] for turn in turns] == [
        "Rooibos and peppermint have no caffeine. Both are in stock.",
        "Of the two that I named, peppermint is the cheaper one.",
    ]


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


def test_sql_report(weft: Weft) -> None:
    for _ in range(2):  # the sample data is made once
        ran = weft(
            "run", example("sql-report"), "--follow", "--input", '{"since": "2026-11-03", "to": "a@example.com"}'
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {"text": "coffee: 15.5 (2 sales)", "mailed_to": ["a@example.com"]}


def test_a_connection_is_signed_in_to_and_renewed(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "server", "dev-model", "--port", "0"]
    provider = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert provider.stdout is not None
    try:
        shop = provider.stdout.readline().removeprefix("dev-model: ").strip().removesuffix("/v1")
        server = SyncServerProcess(tmp_path, {"WEFT_ALLOW_PRIVATE": urlsplit(shop).netloc})
        try:
            weft = Weft(server.url)
            oauth = ["--authorize-url", f"{shop}/oauth/authorize", "--token-url", f"{shop}/oauth/token"]
            hosts = ["--hosts", shop, "--client-id", "weft", "--public"]
            added = weft("connection", "add", "shop", "--kind", "oauth2_code", *hosts, *oauth)
            assert added.returncode == 0 and "needs a sign-in" in added.stdout, added.stderr
            begun = httpx.post(f"{weft.url}/api/connections/shop/connect", trust_env=False).json()
            agreed = httpx.get(begun["url"], trust_env=False)
            assert agreed.headers["location"].startswith(begun["redirect_uri"])
            said = dict(httpx.URL(agreed.headers["location"]).params)
            httpx.post(f"{weft.url}/api/oauth/code", json=said, trust_env=False).raise_for_status()
            assert "shop  oauth2_code  ready" in weft("connection", "list").stdout
            ran = weft("run", example("oauth-orders"), "--follow", "--input", json.dumps({"shop": shop}))
            assert ran.returncode == 0, ran.stderr
            assert json.loads(ran.stdout)["result"] == 42.5, ran.stdout
        finally:
            server.kill()
    finally:
        provider.send_signal(signal.SIGINT)
        provider.communicate(timeout=30)
