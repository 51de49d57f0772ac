"""`weft inbox`, `answer`, `signal`, `signals`, `withdraw`, `signing-key`: what runs wait for, and answering it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import OK, Refused, call, login_name, show, with_json
from server.cli.reading import read_input
from server.cli.render import inbox_lines, signal_lines

if TYPE_CHECKING:
    from executor.kernel.run.links import Signed
    from server.client import AsyncClient
    from server.client.answers import PublicWait, Wait, WaitPage

# Kinds of waits that people and programs can answer; there may be any number of timers and child runs besides.
ANSWERED = ("approval", "form", "attention", "signal", "webhook")


@click.command()
@click.option("--kind", type=click.Choice([*ANSWERED, "child", "timer"]))
@click.option("--workflow", help="Only waits of runs of this workflow.")
@click.option("--run", "run_id", metavar="RUN", help="Only waits of this run.")
@click.option("--limit", type=click.IntRange(1, 1000), default=200, show_default=True)
@with_json
def inbox(url: str, kind: str | None, workflow: str | None, run_id: str | None, limit: int, as_json: bool) -> None:
    """List open waits with their links, oldest first. Timers and child runs only with --kind."""

    async def pages(client: AsyncClient) -> list[WaitPage]:
        kinds = (kind,) if kind else ANSWERED
        return [await client.waits(kind=one, workflow=workflow, run=run_id, limit=limit, counts=True) for one in kinds]

    found = call(url, pages)
    waits = [wait for page in found for wait in page["waits"]]
    waits = sorted(waits, key=lambda wait: (wait["opened_at_ms"], wait["run"], wait["id"]))[:limit]
    in_all = sum(page["counts"]["pending"] for page in found if page["counts"] is not None)
    more = "+" if any("pending" in page["capped"] for page in found) else ""
    show(waits, as_json, inbox_lines(waits), none="No open waits.")
    if waits and in_all > len(waits) and not as_json:
        click.echo(f"There are {in_all:,}{more} open waits. Use filters or a higher --limit to see more.", err=True)


@click.command()
@click.argument("token", metavar="LINK|RUN")
@click.argument("wait", required=False)
@click.option("--action", help="One of the actions, such as approve.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the form. Repeatable.")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.pass_obj
def answer(url: str, token: str, wait: str | None, action: str | None, fields: tuple[str, ...], by: str | None) -> int:
    """Answer a wait. The first answer counts.

    By its link or the token in it; or by RUN and WAIT, which is the node that waits, such as ask@review#2, or the id of
    the wait. Without a link your role decides.
    """
    pairs = [_split_field(text) for text in fields]
    if wait is not None:
        return _answer_in(url, token, wait, action, pairs, by)
    origin, token = _split_link(token)

    async def send(client: AsyncClient) -> PublicWait:
        wait = await client.read_link(token)
        return await client.answer(token, action, _typed(pairs, wait.get("schema")), by=by or login_name())

    # The link is its own credential; our server's token is for our server alone.
    answered = call(origin or url, send, with_token=origin in (None, url.rstrip("/")))
    click.echo(f"Answered {answered['label']!r} of run {answered['run']}.")
    return OK


def _answer_in(url: str, run: str, wait: str, action: str | None, pairs: list[tuple[str, str]], by: str | None) -> int:
    async def send(client: AsyncClient) -> Wait:
        asked = await client.wait(run, wait)
        return await client.answer_wait(
            run, asked["id"], action, _typed(pairs, asked.get("schema")), by=by or login_name()
        )

    answered = call(url, send)
    click.echo(f"Answered {answered['label']!r} of run {answered['run']}.")
    return OK


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("name")
@click.option("--payload", metavar="JSON|@FILE", help="Data of the signal, as JSON or @FILE.")
@click.option("--correlation", help="Only waits with this correlation, or with none, receive it.")
@click.option("--key", help="Dedupe key: a repeated key has no effect.")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.pass_obj
def signal(
    url: str, run_id: str, name: str, payload: str | None, correlation: str | None, key: str | None, by: str | None
) -> None:
    """Send the signal NAME to RUN. It is kept until a block waits for it."""
    value = read_input(payload, "--payload")
    sent = call(
        url,
        lambda client: client.signal(
            run_id, name, value, correlation=correlation, dedupe_key=key, by=by or login_name()
        ),
    )
    news = "sent" if sent["new"] else "had been sent before"
    click.echo(f"Signal {sent['seq']} ({name}) to run {run_id} {news}.")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("name")
@click.argument("value", metavar="[JSON|@FILE]", required=False)
@click.option("--id", help="Id of the request: the same again asks for its answer.")
@click.option("--timeout", "seconds", type=click.FloatRange(0), metavar="S", help="Seconds to wait for the answer.")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.pass_obj
def update(
    url: str, run_id: str, name: str, value: str | None, id: str | None, seconds: float | None, by: str | None
) -> None:
    """Send the update NAME to RUN, and print the answer of its durable function as JSON."""
    given = read_input(value, "JSON")
    try:
        answer = call(
            url,
            lambda client: client.update(run_id, name, given, id=id, by=by or login_name(), seconds=seconds),
        )
    except TimeoutError as error:
        raise Refused(f"{error}.") from None
    click.echo(json.dumps(answer, ensure_ascii=False))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("name")
@click.argument("arguments", metavar="[JSON|@FILE]", required=False)
@click.pass_obj
def query(url: str, run_id: str, name: str, arguments: str | None) -> None:
    """Print the answer of query NAME of RUN as JSON. The object JSON has its arguments.

    It is computed from what the durable function of RUN has published, also after its end.
    """
    given = read_input(arguments, "JSON") or {}
    if not isinstance(given, dict):
        raise Refused("The arguments of a query are a JSON object.")
    found = call(url, lambda client: client.send_query(run_id, name, given))
    click.echo(json.dumps(found["answer"], ensure_ascii=False))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--name", help="Only signals of this name.")
@click.option("--correlation", help="Only signals with this correlation.")
@with_json
def signals(url: str, run_id: str, name: str | None, correlation: str | None, as_json: bool) -> None:
    """List signals sent to RUN and what received them."""
    found = call(url, lambda client: client.signals(run_id, name=name, correlation=correlation))["signals"]
    show(found, as_json, signal_lines(found), none="No signals.")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("wait")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.option("--reason", default="", help="Recorded in the error of the block.")
@click.pass_obj
def withdraw(url: str, run_id: str, wait: str, by: str | None, reason: str) -> None:
    """Take back what RUN asks. WAIT is the node that waits, such as ask@review#2, or the id of the wait.

    The block fails with wait_cancelled, which its error handle may catch.
    """
    done = call(url, lambda client: client.withdraw(run_id, wait, by=by or login_name(), reason=reason))
    click.echo(f"Withdrew {done['label']!r} of run {run_id}.")


@click.command(name="signing-key")
@click.option(
    "--for",
    "what",
    type=click.Choice(["notifications", "requests"]),
    default="notifications",
    show_default=True,
    help="notifications: webhooks of notify and WEFT_NOTIFY_WEBHOOK. requests: what a callback block sends.",
)
def signing_key(what: Signed) -> None:
    """Print the key that signs outgoing webhooks.

    Run it where the server runs and with its settings (WEFT_SECRET_KEY, or the key file beside WEFT_DB).
    """
    from executor.kernel.run.links import Links
    from server.keys import read_secret
    from server.reach import SettingsError
    from server.settings import load_settings

    try:
        settings = load_settings(os.environ)
        key = Links(read_secret(settings), settings.base_url).signing_key(what)
    except SettingsError as error:
        raise Refused(str(error)) from None
    click.echo(key.hex())


def _split_link(text: str) -> tuple[str | None, str]:
    """(origin of the server or None, token) of a token or of a link `https://host/resume/{token}`."""
    if "://" not in text:
        return None, text.rpartition("/")[2]
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    before, found, token = parts.path.rpartition("/resume/")
    if not found or not token.strip("/"):
        raise Refused(
            f"{text} is not a resume link.", "They look like http://127.0.0.1:8765/resume/<token>; see `weft inbox`."
        )
    return f"{parts.scheme}://{parts.netloc}{before.removesuffix('/api')}", token.strip("/")


def _split_field(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise Refused(f"--field must be NAME=VALUE, not {text!r}.")
    return name, value


def _typed(pairs: list[tuple[str, str]], schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert values to the types of the form's schema: `amount=3` is a number if the field is one. Text that does not
    fit stays text, and the server reports the error."""
    properties = (schema or {}).get("properties", {})
    fields: dict[str, Any] = {}
    for name, text in pairs:
        wanted = properties.get(name, {}).get("type", "string")
        fields[name] = text
        if wanted != "string":
            with contextlib.suppress(json.JSONDecodeError):
                fields[name] = json.loads(text)
    return fields
