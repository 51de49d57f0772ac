"""The pages of the reference that are made from the code, so that they say what it does."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from compiler.catalog import BlockSpec
from compiler.diagnostics import CODES
from docs.site import python_names
from executor import errors
from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.registry import Registry
from executor.errors import WeftError
from server.api import TABLE
from server.cli import LISTED, weft
from server.effective import effective
from server.http.errors import STATUS
from server.http.openapi import openapi
from server.variables import OTHERS, PREFIXES, ROWS

FOLDER = "reference/made"


def pages() -> dict[str, str]:
    """Texts by the path of their page in the site."""
    made = {
        "blocks": blocks(),
        "services": services(),
        "codes": codes(),
        "routes": routes(),
        "commands": commands(),
        "settings": settings(),
    }
    texts = {name: "\n".join(lines) + "\n" for name, lines in made.items()} | python_names.pages()
    return {f"{FOLDER}/{name}.md": text for name, text in texts.items()}


def settings() -> Iterator[str]:
    yield "# Settings\n"
    yield "[Run in production](../../howto/run-in-production.md#settings) explains them.\n"
    yield "| variable | default | |\n|---|---|---|"
    defaults = {one.name: one.value for one in effective({}, {})}
    about = {row["name"]: row["about"] for row in ROWS.values()} | OTHERS
    about |= {f"{prefix}<NAME>": text for prefix, text in PREFIXES.items()}
    for name, text in about.items():
        yield f"| `{name}` | {_cell(defaults.get(name) or '')} | {_cell(text)} |"
    yield ""


def blocks() -> Iterator[str]:
    yield "# Block types\n"
    yield "Those that weft has without other packages. [Document](../document.md) explains them with examples.\n"
    registry = Registry.load()
    for type in registry.types():
        spec = registry.get(type)
        assert spec is not None
        yield from _block(spec)


def services() -> Iterator[str]:
    yield "# Services\n"
    yield "Those that [connectors](../../howto/connectors.md) of weft reach, and their operations. If it is not known"
    yield "whether an operation was done, it is repeated, or the service is asked, or a person is.\n"
    for connector in (block.connector for block in connectors() if isinstance(block, ConnectorBlock)):
        auth = connector.auth
        yield f"## {connector.title}\n"
        takes = [auth.title, auth.description.rstrip("."), *(_about(schema) for schema in connector.fields.values())]
        yield f"`connector.{connector.service}`. Its API: <{connector.docs}>. It takes:\n"
        yield from (f"- {_cell(one)}." for one in takes if one)
        yield "\n| operation | | if it is not known whether it was done |\n|---|---|---|"
        for name, one in connector.operations.items():
            after = "the service is asked" if one.check else "a person is asked"
            repeated = one.only_reads or one.idempotent
            yield f"| `{name}` | {_cell(one.title)} | {'it is repeated' if repeated else after} |"
        if connector.events:
            listed = ", ".join(f"`{name}` ({event.title.lower()})" for name, event in connector.events.items())
            yield f"\nEvents of `event.{connector.service}`: {listed}."
        yield ""


def _block(spec: BlockSpec) -> Iterator[str]:
    yield f"## {spec.type}\n"
    yield f"**{spec.title}.** {spec.description}\n"
    yield f"- Category: {spec.category}. Effect: {spec.effect}{_idempotent(spec)}."
    handles = [f"`{handle}`" for handle in spec.handles] + ["those of its params"] * (spec.cases is not None)
    yield f"- Handles: {', '.join([*handles, *([] if spec.trigger else ['`error`'])])}."
    if not spec.trigger and not spec.container:
        yield f"- Attempts: {spec.attempts}. Time limit: {spec.timeout_ms / 1000:g} s. `policy` changes both."
    if spec.output:
        yield f"- Output: {_type(spec.output)}."
    properties: Mapping[str, Any] = spec.params.get("properties", {})
    if not properties:
        yield "\nNo params.\n"
        return
    required = set(spec.params.get("required", ()))
    yield "\n| param | type | default | |\n|---|---|---|---|"
    for name, schema in properties.items():
        default = "required" if name in required else f"`{schema['default']!r}`" if "default" in schema else ""
        yield f"| `{name}` | {_type(schema)} | {_cell(default)} | {_cell(_about(schema))} |"
    yield ""


def _idempotent(spec: BlockSpec) -> str:
    return ", and it is safe to repeat" if spec.effect == "write" and spec.idempotent else ""


def _about(schema: Mapping[str, Any]) -> str:
    parts = [schema.get("title", ""), schema.get("description", "")]
    return ". ".join(part.rstrip(".") for part in parts if part)


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[word]))
    kind = schema.get("type", "any JSON")
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{text} of {_type(schema['items'])}" if kind == "array" and schema.get("items") else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def codes() -> Iterator[str]:
    yield "# Codes\n\n## Findings\n"
    yield "What the compiler finds in a document. One with severity error stops a run from starting.\n"
    yield "| code | severity | |\n|---|---|---|"
    for code, (severity, text) in CODES.items():
        yield f"| `{code}` | {severity} | {_cell(text)} |"
    yield "\n## Errors\n"
    yield "Kinds of refusals and failures. An error may have a more exact `code` than that of its kind.\n"
    yield "| kind | code | HTTP status | |\n|---|---|---|---|"
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, WeftError) and kind is not WeftError:
            about = (kind.__doc__ or "").strip().partition("\n\n")[0]
            yield f"| `{name}` | `{kind.code}` | {_status(kind)} | {_cell(about)} |"


def _status(kind: type[WeftError]) -> int:
    return next((STATUS[base] for base in kind.__mro__ if base in STATUS), 500)


def routes() -> Iterator[str]:
    yield "# Routes\n"
    yield "Made from the route table, as `GET /openapi.json` is. [HTTP API](../http-api.md) explains them by topic.\n"
    described = openapi(TABLE)["paths"]
    for tag in dict.fromkeys(spec.tag for spec in TABLE if spec.documented):
        yield f"## {tag.capitalize()}\n"
        for spec in TABLE:
            if spec.documented and spec.tag == tag:
                yield f"### `{spec.method} {spec.path}`\n"
                role = "No credential." if spec.public else f"Role: {spec.needs}."
                yield f"{spec.summary}. {role}\n"
                yield from _parameters(described[spec.path][spec.method.lower()])


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    parameters: Sequence[Mapping[str, Any]] = operation.get("parameters", ())
    if parameters:
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for each in parameters:
            about = f"| `{each['name']}` | {each['in']} | {_type(each.get('schema', {}))}"
            yield f"{about} | {_cell(each.get('description', ''))} |"
        yield ""
    answers = ", ".join(f"{status}" for status in operation["responses"])
    yield f"Statuses: {answers}.\n"


def commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "What `--help` prints. [Command line](../cli.md) has all in one table, with exit codes and settings.\n"
    for title, rows in LISTED.items():
        yield f"## {title}\n"
        for name, _, _ in rows:
            yield from _command(weft.commands[name], f"weft {name}")


def _command(command: click.Command, path: str) -> Iterator[str]:
    yield f"### {path}\n"
    help = command.get_help(click.Context(command, info_name=path, max_content_width=100))
    yield f"```text\n{help}\n```\n"
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _command(each, f"{path} {name}")
