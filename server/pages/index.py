"""The front page: what waits for people, workflows to run, and the latest runs. And the page that asks for the
token."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from executor.runtime.answers import ASK_PEOPLE
from executor.store.rows import RunRow, WorkflowRow
from executor.views import WaitView
from server.pages.html import Html, el, join, moment, page, status_mark


def front(
    workflows: Sequence[WorkflowRow], runs: Sequence[RunRow], waits: Sequence[WaitView], signed_in: bool = False
) -> Response:
    """`signed_in`: with a session, which can be ended."""
    return page(
        "Home",
        el("section", el("h2", "Pending approvals"), _waits(waits)),
        el("section", el("h2", "Workflows"), _workflows(workflows)),
        el("section", el("h2", "Runs"), _runs(runs)),
        _sign_out() if signed_in else None,
    )


def _sign_out() -> Html:
    button = el("button", "Sign out", type="submit")
    return el("form", el("p", "", class_="notice err", role="alert", hidden=True), button, data_logout=True)


def login(status: int = 401) -> Response:
    return page(
        "Sign in",
        el("h1", "Sign in"),
        el(
            "p",
            "Paste the token from ",
            el("code", "weft token"),
            ", or open the link that ",
            el("code", "weft serve"),
            " printed. For a new link, run ",
            el("code", "weft link"),
            ".",
        ),
        el(
            "form",
            el(
                "div",
                el("label", "Token", for_="token"),
                el("input", type="password", name="token", id="token", required=True, autocomplete="current-password"),
                class_="field",
            ),
            el("p", "", class_="notice err", role="alert", hidden=True),
            el("div", el("button", "Sign in", type="submit", class_="primary"), class_="actions"),
            data_login=True,
            method="post",
            action="/login",
        ),
        el(
            "noscript",
            el("p", "Signing in requires JavaScript. Programs send the header Authorization: Bearer.", class_="quiet"),
        ),
        status=status,
    )


def _waits(waits: Sequence[WaitView]) -> Html:
    people = [wait for wait in waits if wait.link and wait.kind in ASK_PEOPLE]
    if not people:
        return el("p", "No pending approvals.", class_="quiet")
    return el("ul", *[_wait(wait) for wait in people], class_="cards")


def _wait(wait: WaitView) -> Html:
    request = wait.request if isinstance(wait.request, dict) else {}
    title = str(request.get("title") or wait.label or wait.block)
    return el(
        "li",
        el("a", title, href=wait.link, class_="title"),
        el("span", wait.workflow, " · ", el("code", wait.key), class_="quiet"),
        el("span", "asked ", moment(wait.opened_at_ms), class_="quiet"),
        class_="card waiting",
    )


def _workflows(rows: Sequence[WorkflowRow]) -> Html:
    if not rows:
        example = el("code", 'curl -H "Content-Type: application/json" --data @workflow.json …/api/workflows')
        return el("p", "No workflows yet. Publish one with ", example, ".", class_="quiet")
    return el("ul", *[_workflow(row) for row in rows], class_="cards")


def _workflow(row: WorkflowRow) -> Html:
    id = f"input-{row.name}"
    form = el(
        "form",
        el("label", "Input (JSON)", for_=id),
        el("textarea", "{}", name="input", id=id, rows=4, spellcheck="false", class_="code"),
        el("p", "", class_="notice err", role="alert", hidden=True),
        el("div", el("button", "Run", type="submit", class_="primary"), class_="actions"),
        data_run=row.name,
    )
    return el(
        "li",
        el("span", row.name, class_="title"),
        el("span", f"version {row.version} · saved ", moment(row.created_at_ms), class_="quiet"),
        el("details", el("summary", "Run"), form),
        class_="card",
    )


def _runs(rows: Sequence[RunRow]) -> Html:
    if not rows:
        return el("p", "No runs yet.", class_="quiet")
    head = el("tr", *[el("th", name, scope="col") for name in ("Status", "Workflow", "Run", "Created")])
    body = [
        el(
            "tr",
            el("td", status_mark(row.status)),
            el("td", row.workflow),
            el("td", el("a", el("code", row.id), href=f"/runs/{row.id}")),
            el("td", moment(row.created_at_ms)),
        )
        for row in rows
    ]
    return el("div", el("table", el("thead", head), el("tbody", *body)), class_="scroll")


def not_found(what: str) -> Response:
    return page("Not found", el("h1", "Not found"), join(el("p", what)), status=404, live=False)
