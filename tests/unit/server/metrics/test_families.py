"""The pages and files that name metrics have those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from server.metrics.families import METRICS, Metric

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
