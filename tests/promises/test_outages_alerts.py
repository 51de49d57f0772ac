"""The alerts of prometheus-rules.yaml are about what real processes show: metrics, labels and their values. Each fires,
and none on a healthy fleet, by the rules of Prometheus itself, where there is `promtool` (Debian package `prometheus`;
no package of PyPI or npm has it)."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

pytest.importorskip("psycopg")

from tests.support.documents import document
from tests.support.postgres import as_url, by_its_clock, socket_of
from tests.support.postgres_proxy import Proxy
from tests.support.server import ServerProcess, free_port
from tests.support.until import until

pytestmark = pytest.mark.proof

RULES = Path(__file__).parents[2] / "docs/howto/deploy/prometheus-rules.yaml"
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text())
RUN = {"document": document("sets", "start a", blocks={"a": {"type": "set"}})}
THROWS = {"type": "function", "params": {"code": "throw new Error('no')"}}
FAILS = {"document": document("fails", "start a", blocks={"a": THROWS})}
QUEUED = {"document": document("queued", "start a", blocks={"a": {"type": "set"}}, settings={"pool": "none"})}
MINUTES = 40
OF_QUEUE = ("WeftNoWorker", "WeftQueueOld")
TARGET = {"job": "weft", "instance": "a"}  # Prometheus adds these labels
QUICK_S = 0.01  # in a healthy fleet, all that is measured takes no longer than this bucket

Texts = dict[str, str]  # by process
Change = Callable[[Sample], str | None]  # its values of each minute; None: as in a healthy fleet


@pytest_asyncio.fixture
async def texts(tmp_path: Path, postgres: str) -> AsyncIterator[tuple[Texts, Texts, Texts]]:
    """What /metrics of a server and of a worker shows after some runs, while a run waits for a worker of its pool, and
    while the database says nothing."""
    proxy = Proxy(socket_of(postgres))
    await proxy.start()
    address = as_url(by_its_clock(postgres), host="127.0.0.1", port=str(proxy.port))
    processes: list[ServerProcess] = []
    places: dict[str, str] = {}
    try:
        for command in (("serve", "--no-worker"), ("worker",)):
            port, beside = free_port(random.Random()), free_port(random.Random())
            settings = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_DB": address, "WEFT_METRICS_PORT": str(beside)}
            process = await ServerProcess.start(tmp_path / "no.db", port, tmp_path / "log", command=command, **settings)
            processes.append(process)
            await process.ready()
            places[command[0]] = f"http://127.0.0.1:{beside}/metrics"
        async with httpx.AsyncClient(timeout=60) as client:
            for body, status in ((RUN, "succeeded"), (FAILS, "failed")):
                ended = await client.post(f"{processes[0].url}/api/runs?wait=30", json=body)
                assert ended.json()["status"] == status, ended.text
            healthy = {name: (await client.get(url)).text for name, url in places.items()}
            assert (await client.post(f"{processes[0].url}/api/runs", json=QUEUED)).status_code == 202
            queued: Texts = {}

            async def shows_the_queue() -> bool:
                queued.update({name: (await client.get(url)).text for name, url in places.items()})
                return all("weft_queue_runs{" in text for text in queued.values())

            await until(shows_the_queue, within_s=60)
            proxy.be_silent()
            silent = {name: (await client.get(url)).text for name, url in places.items()}
        yield healthy, queued, silent
    finally:
        proxy.be_heard()
        for process in processes:
            await process.clean_up()
        await proxy.stop()


async def test_the_alerts_are_about_what_is_shown(texts: tuple[Texts, Texts, Texts]) -> None:
    """A renamed metric or label would make an alert that never fires."""
    shown: dict[str, list[dict[str, str]]] = {}
    for sample in (each for some in texts for text in some.values() for each in _samples(text)):
        shown.setdefault(sample.name, []).append({**sample.labels, **TARGET})
    shown["up"] = [TARGET]
    rules = re.findall(r"- alert: (\w+)\s+expr: (.*?)\n +(?:for|labels):.*?summary: \"(.*?)\"", RULES.read_text(), re.S)
    assert [alert for alert, *_ in rules] == ALERTS and len(ALERTS) > 10
    for alert, expression, summary in rules:
        by = {label.strip() for labels in re.findall(r"by \((.*?)\)", expression) for label in labels.split(",")}
        found = re.findall(r"\b(weft_\w+|up)\b(?:\{(.*?)\})?", expression)
        assert found, alert
        for name, matchers in found:
            assert name in shown, f"{alert}: no process shows {name}"
            asked = re.findall(r'(\w+)(=~?)"(.*?)"', matchers)
            assert bool(matchers) == bool(asked), f"{alert}: {matchers}"
            fits = [
                labels for labels in shown[name] if all(_fits(labels.get(each[0], ""), *each[1:]) for each in asked)
            ]
            assert fits, f"{alert}: no {name} has {matchers}"
            assert all(by <= labels.keys() for labels in fits), f"{alert}: {name} is not by {by}"
            assert set(re.findall(r"\$labels\.(\w+)", summary)) <= (by or fits[0].keys()), f"{alert}: {summary}"


def _fits(value: str, how: str, wanted: str) -> bool:
    return re.fullmatch(wanted, value) is not None if how == "=~" else value == wanted


async def test_each_alert_fires_and_none_on_a_healthy_fleet(texts: tuple[Texts, Texts, Texts], tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed, and no wheel has it: the rules are only compared with /metrics (above)")
    healthy, queued, silent = texts
    cases = {name: _series(queued if name in OF_QUEUE else healthy, change) for name, change in CHANGES.items()}
    cases["WeftDatabaseDown"] = _series(silent, lambda sample: None)
    cases["WeftProcessDown"] = [*_series({"server": healthy["serve"]}, lambda sample: None), _up("weft-workers", 0)]
    cases["WeftAbsent"] = [_up("weft", 0)]
    assert sorted(cases) == sorted(ALERTS), "an alert without a case"
    tests = [_test(_series(healthy, lambda sample: None), [])]
    tests += [_test(_series(healthy, _is("weft_schedule_lag_seconds", 120)), ["WeftTimersLate"])]
    tests += [
        _test(series, [name, "WeftProcessDown"] if name == "WeftAbsent" else [name]) for name, series in cases.items()
    ]
    file = tmp_path / "alerts.yaml"
    file.write_bytes(orjson.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = await asyncio.to_thread(
        subprocess.run, [promtool, "test", "rules", str(file)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _test(series: list[dict[str, str]], firing: list[str]) -> dict[str, Any]:
    """Exactly these alerts fire at the end."""
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(firing)]
    asked = {
        "expr": 'count by (alertname) (count by (alertname, instance) (ALERTS{alertstate="firing"})) > bool 0',
        "eval_time": f"{MINUTES - 1}m",
        "exp_samples": expected,
    }
    return {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}


def _series(texts: Texts, change: Change) -> list[dict[str, str]]:
    series = [_up("weft" if name == "serve" else "weft-workers", 1) for name in texts]
    for name, text in texts.items():
        for sample in _samples(text):
            labels = {**sample.labels, "job": "weft", "instance": name}
            written = ",".join(f'{key}="{value}"' for key, value in labels.items())
            values = change(sample) or _healthy(sample)
            series.append({"series": f"{sample.name}{{{written}}}", "values": values})
    return series


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from (sample for sample in family.samples if sample.name.startswith("weft_"))


def _up(job: str, value: int) -> dict[str, str]:
    return {"series": f'up{{job="{job}",instance="{job}"}}', "values": f"{value}x{MINUTES}"}


def _healthy(sample: Sample) -> str:
    """Counters of what went well grow, and what is measured is quick."""
    grows = sample.name.endswith("_bucket") and float(sample.labels["le"]) >= QUICK_S
    grows = grows or (sample.name == "weft_runs_ended_total" and sample.labels["status"] == "succeeded")
    return f"{sample.value}+{10 if grows else 0}x{MINUTES}"


def _is(name: str, value: float) -> Change:
    return lambda sample: f"{value}x{MINUTES}" if sample.name == name else None


def _grows(name: str, by: float, **labels: str) -> Change:
    def change(sample: Sample) -> str | None:
        wanted = sample.name == name and labels.items() <= sample.labels.items()
        return f"{sample.value}+{by}x{MINUTES}" if wanted else None

    return change


def _slow(name: str) -> Change:
    def change(sample: Sample) -> str | None:
        if sample.name != f"{name}_bucket":
            return None
        return f"{sample.value}+{10 if float(sample.labels['le']) > 1.0 else 0}x{MINUTES}"

    return change


def _no_worker(sample: Sample) -> str | None:
    return _is("weft_workers", 0)(sample) or _is("weft_queue_oldest_seconds", 1)(sample)


CHANGES: dict[str, Change] = {
    "WeftNoWorker": _no_worker,
    "WeftRunsLeft": _is("weft_takeover_lag_seconds", 120),
    "WeftQueueOld": _is("weft_queue_oldest_seconds", 120),
    "WeftRunsFail": _grows("weft_runs_ended_total", 20, status="failed"),
    "WeftTimersLate": _is("weft_timer_lag_seconds", 60),
    "WeftMessagesLate": _is("weft_notification_lag_seconds", 900),
    "WeftCommitsSlow": _slow("weft_commit_seconds"),
    "WeftLeasesLost": _grows("weft_leases_lost_total", 1),
    "WeftEventLoopLate": _slow("weft_event_loop_late_seconds"),
}
