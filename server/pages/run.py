"""One run, live: its status, what it waits for, its nodes and its events. The script fills in what happens after the
page was made."""

from __future__ import annotations

from starlette.responses import Response

from executor.store.rows import TERMINAL
from executor.views import NodeView, RunView, WaitView
from server.pages.html import Html, el, json_block, moment, page, status_mark

NODES_SHOWN = 500


def run_page(run: RunView) -> Response:
    ended = run.status in TERMINAL
    version = f" version {run.version}" if run.version else ""
    return page(
        f"{run.workflow} {run.status}",
        el("p", run.workflow, version, class_="eyebrow"),
        el("h1", el("code", run.id)),
        el(
            "p",
            el("span", status_mark(run.status), id="status"),
            " ",
            el("span", "", id="connection", class_="quiet"),
            el("button", "Cancel run", type="button", id="cancel", hidden=ended),
            class_="line",
        ),
        el(
            "p",
            "Created ",
            moment(run.created_at_ms),
            ", ended ",
            el("span", moment(run.finished_at_ms), id="finished"),
            class_="quiet",
        ),
        el("div", _error(run), id="error"),
        el(
            "section",
            el("h2", "Waiting for"),
            el("ul", *[_wait(w) for w in _pending(run)], id="waits", class_="cards"),
            id="waiting",
            hidden=not _pending(run),
        ),
        el(
            "section",
            el("h2", "Output"),
            el("div", json_block(run.output), id="output"),
            id="result",
            hidden=run.status != "succeeded",
        ),
        el("section", el("h2", "Nodes"), _nodes(run)),
        el(
            "section",
            el("h2", "Events"),
            el("ol", id="events", class_="events"),
            el(
                "noscript",
                el(
                    "p",
                    "Live events require JavaScript. ",
                    el("a", "Events as a stream", href=f"/api/runs/{run.id}/events"),
                    class_="quiet",
                ),
            ),
        ),
        el("details", el("summary", "Input"), json_block(run.input)),
        el("div", id="run", hidden=True, data_id=run.id, data_ended=ended),
    )


def _pending(run: RunView) -> list[WaitView]:
    return [wait for wait in run.waits if wait.status == "pending"]


def _wait(wait: WaitView) -> Html:
    request = wait.request if isinstance(wait.request, dict) else {}
    title = str(request.get("title") or wait.label or wait.block)
    label = el("a", title, href=wait.link, class_="title") if wait.link else el("span", title, class_="title")
    until = el("span", "until ", moment(wait.expires_at_ms), class_="quiet") if wait.expires_at_ms else None
    return el(
        "li", label, el("span", wait.kind, " · ", el("code", wait.key), class_="quiet"), until, class_="card waiting"
    )


def _error(run: RunView) -> Html | None:
    if not run.error:
        return None
    return el(
        "p",
        el("strong", str(run.error.get("code", "error"))),
        " ",
        str(run.error.get("message", "")),
        class_="notice err",
        role="alert",
    )


def _nodes(run: RunView) -> Html:
    head = el("tr", *[el("th", name, scope="col") for name in ("Node", "Status", "Attempt", "What")])
    rows = [_node(node) for node in run.nodes[:NODES_SHOWN]]
    more = el("p", f"and {len(run.nodes) - NODES_SHOWN} more", class_="quiet") if len(run.nodes) > NODES_SHOWN else None
    return el("div", el("table", el("thead", head), el("tbody", *rows, id="nodes")), more, class_="scroll")


def _node(node: NodeView) -> Html:
    what = str((node.error or {}).get("message") or node.reason or "")
    return el(
        "tr",
        el("td", el("code", node.key)),
        el("td", status_mark(node.status)),
        el("td", str(node.attempt)),
        el("td", what),
        data_key=node.key,
    )
