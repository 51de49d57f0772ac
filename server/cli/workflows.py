"""`weft deploy`, `workflows`, `get`, `activate`, `delete`: the stored workflows, and their active versions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import BAD_ARGUMENTS, OK, Refused, call, counted, print_warnings, show, with_json
from server.cli.reading import check_free, read_documents, source_findings, write_document
from server.cli.render import plain, version_lines, workflow_lines

if TYPE_CHECKING:
    from server.client import AsyncClient
    from server.client.answers import SavedWorkflow, VersionPage, WorkflowDeleted


ACTIVATE_TRIGGERS = click.option(
    "--activate-triggers", is_flag=True, help="Start runs by its triggers even if blocks were not imported."
)


@click.command()
@click.argument("file")
@click.option("--name", help="Name of the workflow. Default: the name in the document.")
@click.option(
    "--replaces", type=click.IntRange(0), metavar="VERSION", help="Fail if another version is active. 0: if any is."
)
@ACTIVATE_TRIGGERS
@click.pass_obj
def deploy(url: str, file: str, name: str | None, replaces: int | None, activate_triggers: bool) -> None:
    """Store the workflow in FILE as the active version of NAME.

    Workflow functions that it calls are stored before it, under their own names.
    """
    document, called = read_documents(file)
    print_warnings({"diagnostics": source_findings(file)})
    for each, under, instead in (*((one, None, None) for one in called), (document, name, replaces)):
        saved = call(url, partial(_deploy, each, under, activate_triggers, instead))
        print_warnings(saved)
        click.echo(_stored_line(saved))


def _deploy(
    document: Any, name: str | None, activate: bool, replaces: int | None, client: AsyncClient
) -> Awaitable[SavedWorkflow]:
    return client.deploy(document, name, activate_triggers=activate, replaces=replaces)


@click.command()
@click.argument("name", required=False)
@with_json
def workflows(url: str, name: str | None, as_json: bool) -> int:
    """List stored workflows, or the versions of NAME."""
    if name is not None:
        return _versions(url, name, as_json)
    found = call(url, lambda client: client.workflows())["workflows"]
    show(found, as_json, workflow_lines(found), none="No workflows yet. Store one with `weft deploy FILE`.")
    return OK


def _versions(url: str, name: str, as_json: bool) -> int:
    async def all_pages(client: AsyncClient) -> VersionPage:
        page = await client.versions(name)
        while page["next"] is not None:
            more = await client.versions(name, page["next"])
            more["versions"] = page["versions"] + more["versions"]
            page = more
        return page

    found = call(url, all_pages)
    show(found, as_json, version_lines(found))
    return OK


@click.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Default: the active one.")
@click.option("-o", "--out", "out", metavar="FILE", help="Write it to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--python", "as_python", is_flag=True, help="As Python source, which `weft deploy` takes.")
@click.option("--original", is_flag=True, help="As it was before the import, if it was imported.")
@click.pass_obj
def get(
    url: str, name: str, version: int | None, out: str | None, force: bool, as_python: bool, original: bool
) -> None:
    """Print the document of NAME as JSON, or as Python.

    A workflow that was imported is printed in the format weft/1.
    """
    if as_python and original:
        raise Refused("--python and --original exclude each other.", "Leave one of them out.")
    check_free(out, force)
    found = call(url, lambda client: client.workflow(name, version, converted=not original))
    if write_document(found["document"], out, as_python=as_python):
        click.echo(f"{found['name']} version {found['version']} written to {out}", err=True)


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@ACTIVATE_TRIGGERS
@click.pass_obj
def activate(url: str, name: str, version: int, activate_triggers: bool) -> None:
    """Make VERSION of NAME the active one.

    It runs from now on where no version is named, also by the workflow's schedules and webhooks. `weft workflows NAME`
    lists versions.
    """
    saved = call(url, lambda client: client.activate(name, version, activate_triggers=activate_triggers))
    print_warnings(saved)
    if saved["activated"]:
        click.echo(f"{saved['name']} version {saved['version']} is active instead of version {saved['replaced']}")
    else:
        click.echo(f"{saved['name']} version {saved['version']} is already active")


@click.command()
@click.argument("name")
@click.argument("title")
@click.pass_obj
def rename(url: str, name: str, title: str) -> None:
    """Show TITLE in place of the name of a workflow.

    It is found by both: links, webhooks, schedules, runs and calls keep NAME. "" shows the name again.
    """
    shown = call(url, lambda client: client.rename(name, title))["title"]
    click.echo(plain(f"{name} is shown as {shown or name}"))


@click.group()
def delete() -> None:
    """Delete a run or a workflow."""


@delete.command("run")
@click.argument("run_id", metavar="RUN")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete_run(url: str, run_id: str, yes: bool) -> int:
    """Delete RUN and the runs it has started. They must have ended."""

    async def ask(client: AsyncClient) -> int | None:
        run = await client.get_run(run_id)
        if not yes and not _confirmed(f"Delete run {run_id} of {plain(run['workflow'])} ({run['status']})?"):
            return None
        return (await client.delete_run(run_id))["runs"]

    deleted = call(url, ask)
    if deleted is None:
        return _nothing_deleted()
    below = "" if deleted == 1 else f" and {counted(deleted - 1, 'run')} it had started"
    click.echo(f"Deleted run {run_id}{below}.")
    return OK


@delete.command("workflow")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete_workflow(url: str, name: str, yes: bool) -> int:
    """Delete the workflow NAME with its versions, schedules and webhooks.

    Refused while a run of it is open. Runs that have ended stay: `weft gc` and `weft delete run` delete those.
    """

    async def ask(client: AsyncClient) -> WorkflowDeleted | None:
        await client.workflow(name)
        if not yes and not _confirmed(f"Delete workflow {name} with its versions, schedules and webhooks?"):
            return None
        return await client.delete_workflow(name)

    deleted = call(url, ask)
    if deleted is None:
        return _nothing_deleted()
    counts = ((deleted["schedules"], "schedule"), (deleted["webhooks"], "webhook"))
    others = " and ".join(counted(number, noun) for number, noun in counts if number)
    click.echo(f"Deleted workflow {name}{f' with {others}' if others else ''}.")
    return OK


def _stored_line(saved: Mapping[str, Any]) -> str:
    """`hello version 1 (active again instead of version 2, 6b86b273ff34)`."""
    if saved["created"]:
        news = "new"
    elif not saved["activated"]:
        news = "unchanged"
    else:
        news = f"active again instead of version {saved['replaced']}" if saved["replaced"] else "active again"
    return f"{saved['name']} version {saved['version']} ({news}, {saved['hash'][:12]})"


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:  # nothing to read an answer from, or Ctrl-C
        click.echo(err=True)
        raise Refused("Nothing was deleted: no answer to the question.", "Use --yes to skip it.") from None


def _nothing_deleted() -> int:
    click.echo("Nothing was deleted.", err=True)
    return BAD_ARGUMENTS
