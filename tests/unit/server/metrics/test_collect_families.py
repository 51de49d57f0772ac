"""The pages and files that name metrics have those that there are."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from server.metrics.collect import METRICS, Metric

ROOT = Path(__file__).parents[4]


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.of} | {metric.help} |"


def test_the_page_has_each_metric_as_the_code_has_it() -> None:
    page = (ROOT / "docs/howto/observe.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `weft_")]
    assert rows == [_row(metric) for metric in METRICS.values()]


def test_names_are_as_prometheus_wants_them() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"weft_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.kind != "histogram" or metric.name.endswith("_seconds"), metric.name


OBSERVE = ROOT / "docs/howto/deploy"


def _known(expression: str) -> set[str]:
    """Names of metrics in it. Raises KeyError for one that there is not, and for a label that it does not have."""
    found = set()
    for name, _, labels in re.findall(r"(weft_[a-z_]+)(\{([^}]*)\})?", expression):
        base = re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name
        metric = METRICS[base]
        assert (metric.kind == "histogram") == (base != name), f"{name} is a {metric.kind}"
        for label in re.findall(r"(\w+)=", labels):
            assert label in metric.labels, f"{name} has no label {label}"
        found.add(base)
    return found


def _groups_are_labels(expression: str) -> None:
    """`sum by (workflow) (...)`: the labels of the metrics in it, those of Prometheus, and the bound of a bucket."""
    allowed = {"instance", "le"} | {label for name in _known(expression) for label in METRICS[name].labels}
    for group in re.findall(r"by \(([^)]*)\)", expression):
        assert set(group.replace(" ", "").split(",")) <= allowed, expression


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    dashboard = orjson.loads((OBSERVE / "grafana-dashboard.json").read_bytes())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown: set[str] = set()
    for expression in expressions:
        assert _known(expression), expression
        _groups_are_labels(expression)
        shown |= _known(expression)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    left_out = {"weft_claims_total", "weft_changes_total", "weft_event_loop_lag_seconds", "weft_worker_draining"}
    assert set(METRICS) - shown - left_out <= {"weft_runs_started_total", "weft_steps_total", "weft_database_up"}


def test_the_alerts_are_about_metrics_that_there_are() -> None:
    text = (OBSERVE / "prometheus-rules.yaml").read_text(encoding="utf-8")
    assert text.count("- alert: ") == text.count("expr: ") == text.count("summary: ") >= 8
    for expression in re.findall(r"expr: (\|\n(?: {10,}.*\n)+|.*)", text):
        assert _known(expression) or expression.startswith("up{"), expression  # which is Prometheus's own
        _groups_are_labels(expression)
