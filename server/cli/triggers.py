"""`weft cron` and `weft hooks`: what starts runs without a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click

from server.cli.common import OK, call, show, with_json
from server.cli.reading import read_input
from server.cli.render import plain

if TYPE_CHECKING:
    from server.client.answers import ScheduleSpec

Json = Mapping[str, Any]


@click.group()
def cron() -> None:
    """Schedules: runs that the clock starts.

    Those that a stored workflow declares in a `schedule` block are listed and switched here, and changed there.
    """


@cron.command()
@click.argument("workflow", metavar="NAME")
@click.option("--cron", "expression", required=True, help="Minute, hour, day, month, weekday: '0 9 * * MON-FRI'.")
@click.option("--tz", default="UTC", show_default=True, help="Time zone, such as Europe/Berlin.")
@click.option("--input", "input_text", metavar="JSON|@FILE", help="Input of each run, as JSON or @FILE.")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--overlap", type=click.Choice(["skip", "queue", "allow"]), help="If a run is still open. Default: skip.")
@click.option("--catch-up", type=click.Choice(["one", "none", "all"]), help="Which missed times to run. Default: one.")
@click.option("--id", "schedule", help="Id of the schedule. Default: the workflow's name.")
@with_json
def add(
    url: str,
    workflow: str,
    expression: str,
    tz: str,
    input_text: str | None,
    trigger: str | None,
    overlap: str | None,
    catch_up: str | None,
    schedule: str | None,
    as_json: bool,
) -> None:
    """Run the workflow NAME on a schedule. An existing id is changed."""
    spec = {"workflow": workflow, "cron": expression, "tz": tz, "input": read_input(input_text)}
    spec |= {"trigger": trigger, "overlap": overlap, "catch_up": catch_up}
    changes = {name: value for name, value in spec.items() if value is not None}
    made = call(url, lambda client: client.put_schedule(schedule or _plain_id(workflow), cast("ScheduleSpec", changes)))
    show(made, as_json, _schedule_lines(made))


@cron.command(name="ls")
@click.option("--workflow", help="Only for this workflow.")
@with_json
def list_schedules(url: str, workflow: str | None, as_json: bool) -> None:
    """List schedules with their next run."""
    found = call(url, lambda client: client.schedules(workflow))["schedules"]
    show(found, as_json, (_schedule_line(one) for one in found))
    if not found:
        click.echo("No schedules. Create one with `weft cron add NAME --cron '0 9 * * *'`.", err=True)


@cron.command(name="show")
@click.argument("schedule", metavar="ID")
@with_json
def show_schedule(url: str, schedule: str, as_json: bool) -> None:
    """Show a schedule with its next and last runs."""
    found = call(url, lambda client: client.schedule(schedule))
    show(found, as_json, _schedule_lines(found))


@cron.command(name="rm")
@click.argument("schedule", metavar="ID")
@click.pass_obj
def remove_schedule(url: str, schedule: str) -> None:
    """Delete a schedule. Its runs are kept."""
    call(url, lambda client: client.delete_schedule(schedule))
    click.echo(f"Deleted schedule {schedule}.")


@cron.command()
@click.argument("schedule", metavar="ID")
@click.pass_obj
def enable(url: str, schedule: str) -> int:
    """Enable a schedule. Its next run is the first from now."""
    return _switch(url, schedule, "enable")


@cron.command()
@click.argument("schedule", metavar="ID")
@click.pass_obj
def disable(url: str, schedule: str) -> int:
    """Disable a schedule. Times that pass meanwhile are not made up for."""
    return _switch(url, schedule, "disable")


@cron.command(name="run")
@click.argument("schedule", metavar="ID")
@click.pass_obj
def run_now(url: str, schedule: str) -> None:
    """Start a run of a schedule now."""
    started = call(url, lambda client: client.run_schedule(schedule))
    click.echo(f"run {started['run']} {started['status']}")


@click.group()
def hooks() -> None:
    """Webhooks: runs that requests of other systems start.

    Those that a stored workflow declares in a `webhook` block are listed and switched here, and changed there.
    """


@hooks.command(name="ls")
@click.option("--workflow", help="Only for this workflow.")
@with_json
def list_hooks(url: str, workflow: str | None, as_json: bool) -> None:
    """List webhooks with their addresses."""
    found = call(url, lambda client: client.webhooks(workflow))["webhooks"]
    width = max((len(_id(one)) for one in found), default=0)
    lines = (f"{_id(one):<{width}}  {_kind(one):<6}  {_mark(one)}  {plain(one['url'])}" for one in found)
    show(found, as_json, lines)
    if not found:
        click.echo("No webhooks. Deploy a workflow with a `webhook` block to create one.", err=True)


@hooks.command(name="show")
@click.argument("hook", metavar="ID")
@with_json
def show_hook(url: str, hook: str, as_json: bool) -> None:
    """Show a webhook with its secret and its last deliveries."""
    found = call(url, lambda client: client.webhook(hook))
    show(found, as_json, _hook_lines(found))


@hooks.command()
@click.argument("hook", metavar="ID")
@click.pass_obj
def rotate(url: str, hook: str) -> None:
    """Replace the secret of a webhook and print the new one."""
    click.echo(call(url, lambda client: client.rotate_webhook(hook))["secret"])


def _kind(hook: Mapping[str, Any]) -> str:
    """Return how requests are authenticated, or "form" or "chat" for a public page."""
    return str(hook["auth"] if hook.get("kind", "webhook") == "webhook" else hook["kind"])


def _switch(url: str, schedule: str, how: str) -> int:
    found = call(
        url,
        lambda client: client.enable_schedule(schedule) if how == "enable" else client.disable_schedule(schedule),
    )
    show(found, False, [_schedule_line(found)])
    return OK


def _schedule_line(one: Json) -> str:
    next_text = _local_time(one["next_run_at_ms"], one["tz"]) if one["next_run_at_ms"] else "-"
    by = f"  by {plain(one['made_by'])}" if one["made_by"] else ""
    line = f"{_id(one)}  {plain(one['cron'])}  {one['tz']}  {_mark(one)}  next {next_text}{by}"
    push = one["push"]
    if push is not None:
        until = f" until {_local_time(push['expires_at_ms'], one['tz'])}" if push["expires_at_ms"] else ""
        line += f"  pushed{until}" if push["registered"] else "  not registered"
    errors = [plain(error) for error in (one["error"], push and push["error"]) if error]
    return "  ".join([line, *(click.style(error, fg="red") for error in errors)])


def _schedule_lines(one: Json) -> Iterator[str]:
    yield _schedule_line(one)
    yield from (f"  at {_local_time(at, one['tz'])}" for at in one["upcoming_ms"][1:])
    for fire in one["fires"][:10]:
        rest = fire["run"] or fire["error"] or ""
        yield f"  {_local_time(fire['due_ms'], one['tz'])}  {fire['outcome']:<7}  {plain(rest)}".rstrip()


def _hook_lines(one: Json) -> Iterator[str]:
    yield f"{_id(one)}  {one['auth']}  {_mark(one)}"
    yield f"  address   {plain(one['url'])}"
    yield f"  starts    {plain(one['workflow'])}" + (f" at {plain(one['trigger'])}" if one["trigger"] else "")
    if one["secret"]:
        yield f"  secret    {one['secret']}"
    elif one["secret_env"]:
        yield f"  secret    the value of {one['secret_env']}"
    if one["problem"]:
        yield f"  {click.style(plain(one['problem']), fg='red')}"
    for delivery in one["deliveries"][:10]:
        yield f"  {_local_time(delivery['at_ms'])}  {delivery['outcome']}  {plain(delivery['run'] or '')}".rstrip()
    for refused in one["refused"]:
        since = _local_time(refused["first_at_ms"])
        yield f"  {_local_time(refused['last_at_ms'])}  {refused['outcome']}  {refused['count']} refused since {since}"


def _local_time(at_ms: int, tz: str | None = None) -> str:
    """Format a time in the zone, or in that of this machine if the zone is not known here."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    zone: ZoneInfo | None = None
    with suppress(ZoneInfoNotFoundError):
        zone = ZoneInfo(tz) if tz else None
    return f"{datetime.fromtimestamp(at_ms / 1000, zone):%Y-%m-%d %H:%M}"


def _mark(one: Json) -> str:
    return click.style("on", fg="green") if one["enabled"] else click.style("off", fg="bright_black")


def _id(one: Json) -> str:
    return plain(one["id"])


def _plain_id(workflow: str) -> str:
    """Return the workflow's name with the characters that the id of a schedule may have."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "-" for char in workflow)[:128]
