"""`weft setup`: what is left before a workflow runs, done one by one in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import click

from server.cli.common import FAILED, OK, Refused, call
from server.cli.credentials import known_of, sign_in
from server.cli.reading import is_file, is_python, read_document, write_document
from server.cli.render import task_lines

if TYPE_CHECKING:
    from server.client.answers import ConnectionSpec

_SHOWN: Final = 20
_KINDS: Final = {"bearer": "bearer", "basic": "basic", "header": "api_key", "query": "api_key", "ssh": "ssh"}
Json = dict[str, Any]
Save = Callable[[Json], None]


@click.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("-o", "--out", metavar="FILE", help="Write the document to FILE instead.")
@click.pass_obj
def setup(url: str, workflow: str, out: str | None) -> int:
    """Do what is left before a workflow runs, one by one.

    Accounts are connected, channels chosen, secrets set. FILE is written after each answer, a draft of the stored
    workflow NAME is saved. Without a terminal, the list is printed, and the exit code is 1 while anything is left.
    """
    document, save = _opened(url, workflow, out)
    asking = is_terminal()
    skipped: set[str] = set()
    while True:
        left = call(url, lambda client: client.validate(document))["tasks"]
        todo = [task for task in left if task["kind"] != "triggers" and task["id"] not in skipped]
        if not asking or not todo:
            break
        task = cast("Json", todo[0])
        click.echo(f"\n{click.style(task['title'], bold=True)}  ({len(todo)} left)", err=True)
        try:
            done = _DO[task["kind"]](url, task, document)
        except Refused as error:
            error.show()
            done = False
        if done:
            save(document)
        else:
            skipped.add(task["id"])
    for line in task_lines(left):
        click.echo(line)
    if not left:
        click.echo("Nothing is left: run it.", err=True)
    return FAILED if any(task["kind"] != "triggers" for task in left) else OK


def is_terminal() -> bool:
    return sys.stdin.isatty()


def _opened(url: str, workflow: str, out: str | None) -> tuple[Json, Save]:
    """Return the document, and what stores it. Raises Refused."""
    if is_file(workflow):
        if is_python(workflow) or (workflow == "-" and out is None):
            raise Refused(f"{workflow} cannot be written.", "Give a JSON file, or --out FILE.")
        document = read_document(workflow)
        if not isinstance(document, dict) or not str(document.get("format")).startswith("weft/"):
            raise Refused(f"{workflow} is not a document of weft.", f"First: weft import {workflow} -o flow.json")
        return document, lambda changed: cast("None", write_document(changed, out or workflow))
    drafts = call(url, lambda client: client.drafts())["drafts"]
    found = next((one["id"] for one in drafts if workflow in (one["id"], one["name"], one["base_name"])), None)
    if found is None:
        stored = call(url, lambda client: client.workflow(workflow, converted=True))
        made = call(url, lambda client: client.create_draft(stored["document"], workflow, stored["version"]))
        found = made["id"]
    draft = call(url, lambda client: client.draft(found))
    click.echo(f"Draft {found}: {url}/w/{quote(found)}", err=True)
    rev = draft["rev"]

    def save(changed: Json) -> None:
        nonlocal rev
        rev = call(url, lambda client: client.save_draft(found, rev, changed, draft["name"]))["rev"]

    if out is not None:
        return draft["document"], lambda changed: cast("None", write_document(changed, out))
    return draft["document"], save


def _connect(url: str, task: Json, document: Json) -> bool:
    auth = _schema(url, task, "connection").get("x-ui", {}).get("auth", {})
    stored = call(url, lambda client: client.connections())
    known = [one["name"] for one in stored["connections"]]
    if task.get("name") in known and _asked(f"Sign in to {task['name']}? `yes`, or nothing to choose another") == "yes":
        return sign_in(url, task["name"])["state"] == "ready"
    for number, name in enumerate(known, 1):
        click.echo(f"{number:>4}  {name}", err=True)
    answer = _asked("Number of a connection, `new`, or nothing to skip")
    if answer.isdecimal() and 0 < int(answer) <= len(known):
        return _put(document, task, "connection", known[int(answer) - 1])
    if answer != "new":
        return False
    name = _asked("Name", task.get("name") or str(task.get("type", "")).rpartition(".")[2])
    hosts = _asked("Hosts that it may be sent to", auth.get("host", "")).replace(",", " ").split()
    provider = next((one for one in stored["providers"] if one["id"] == auth.get("provider")), None)
    if provider is not None and _asked("`token` to paste one, or `sign-in` in a browser", "token") == "sign-in":
        spec = _client_of(cast("Json", provider), auth)
    else:
        spec = _pasted(auth)
    call(url, lambda client: client.put_connection(name, cast("ConnectionSpec", {**spec, "hosts": hosts})))
    if spec["kind"] == "oauth2_code":
        sign_in(url, name)
    tested = call(url, lambda client: client.test_connection(name, service=auth.get("service", "")))
    if tested["ok"]:
        click.echo(f"Connected as {tested['who']}." if tested["who"] else "Connected.", err=True)
    elif tested["outcome"] != "nothing":
        click.echo(tested["message"], err=True)
    return _put(document, task, "connection", name)


def _pasted(auth: Json) -> Json:
    spec: Json = {"kind": _KINDS.get(auth.get("kind", ""), "bearer")}
    if spec["kind"] in ("basic", "ssh"):
        spec["username"] = _asked("User name")
    if spec["kind"] == "ssh":
        spec["host_key"] = _asked("Host key of the server (SHA256:…), or nothing to have it shown")
        click.echo("A private key has several lines: add the connection with `weft connection add`.", err=True)
    elif spec["kind"] == "api_key":
        where = "query" if auth["kind"] == "query" else "header"
        spec |= {"where": where, "name": auth.get("name") or "Authorization", "prefix": auth.get("prefix", "")}
    return spec | {"secret": click.prompt(str(auth.get("title") or "Token"), hide_input=True, err=True)}


def _client_of(provider: Json, auth: Json) -> Json:
    """Ask for the client that a person has registered with the provider: with its secret, or public where it may be."""
    if provider["docs"]:
        click.echo(f"Register a client: {provider['docs']}", err=True)
    spec: Json = {"kind": "oauth2_code", **known_of(provider), "client_id": _asked("Client id")}
    spec["scopes"] = _asked("Scopes", auth.get("scopes") or provider["scopes"])
    about, more = ("Client secret, or nothing without one", {"default": "", "show_default": False})
    if not provider["pkce"]:
        about, more = "Client secret", {}
    return spec | {"secret": click.prompt(about, hide_input=True, err=True, **cast("Any", more))}


def _choose(url: str, task: Json, document: Json) -> bool:
    at = task["pointers"][0]
    field, params = at.rpartition("/")[2], _at(document, at.rpartition("/")[0])
    listed: list[Any] = []
    search, cursor = "", None
    while True:
        found = _listed(url, task["type"], field, params, search, cursor)
        listed = (listed if cursor else []) + found["choices"]
        for number, one in enumerate(listed[:_SHOWN], 1):
            about = one.get("about") or (str(one["value"]) if one["title"] != str(one["value"]) else "")
            click.echo(f"{number:>4}  {one['title']}  {click.style(about, dim=True)}".rstrip(), err=True)
        more = ", `more`" if found["next"] else ""
        answer = _asked(f"Number, text to search{more}, =TEXT to take it as it is, or nothing to skip")
        if not answer:
            return False
        if answer.startswith("="):
            return _put(document, task, field, answer[1:])
        if answer.isdecimal() and 0 < int(answer) <= len(listed[:_SHOWN]):
            value = listed[int(answer) - 1]["value"]
            is_list = _schema(url, task, field).get("type") == "array"
            return _put(document, task, field, [value] if is_list else value)
        search, cursor = (search, found["next"]) if answer == "more" and found["next"] else (answer, None)


def _listed(url: str, type: str, field: str, params: Json, search: str, cursor: str | None) -> Json:
    return cast("Json", call(url, lambda client: client.choices(type, field, params, search=search, cursor=cursor)))


def _fill(url: str, task: Json, document: Json) -> bool:
    field = task["pointers"][0].rpartition("/")[2]
    answer = _asked("Value, or nothing to skip")
    if not answer:
        return False
    if _schema(url, task, field).get("type") == "string":
        return _put(document, task, field, answer)
    try:
        return _put(document, task, field, json.loads(answer))
    except json.JSONDecodeError:
        return _put(document, task, field, answer)


def _secret(url: str, task: Json, document: Json) -> bool:
    value = click.prompt("Value, or nothing to skip", hide_input=True, default="", show_default=False, err=True)
    if not value:
        return False
    hosts = _asked("Hosts that it may be sent to").replace(",", " ").split()
    call(url, lambda client: client.put_secret(task["name"], value, hosts))
    return True


def _told(url: str, task: Json, document: Json) -> bool:
    click.echo(task.get("hint") or "Do it in the editor.", err=True)
    return False


def _model(url: str, task: Json, document: Json) -> bool:
    if task.get("hint"):
        click.echo(task["hint"], err=True)
    answer = _asked("Model, such as openai:gpt-5-mini, or nothing to skip")
    return bool(answer) and _put(document, task, "model", answer)


_DO: Final[Mapping[str, Callable[[str, Json, Json], bool]]] = {
    "connect": _connect, "secret": _secret, "model": _model, "python": _told, "replace": _told, "choose": _choose,
    "fill": _fill,
}  # fmt: skip


def _asked(text: str, default: str = "") -> str:
    return str(click.prompt(text, default=default, show_default=bool(default), err=True)).strip()


def _schema(url: str, task: Json, field: str) -> Json:
    types = call(url, lambda client: client.blocks())["blocks"]
    spec = next((one for one in types if one["type"] == task.get("type")), None)
    found: Json = {} if spec is None else spec["params"].get("properties", {}).get(field, {})
    return found


def _at(document: Json, pointer: str) -> Any:
    from compiler.references import unescape

    value: Any = document
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value.setdefault(unescape(step), {})
    return value


def _put(document: Json, task: Json, field: str, value: Any) -> bool:
    for pointer in task["pointers"]:
        _at(document, pointer.rpartition("/")[0])[field] = value
    return True
