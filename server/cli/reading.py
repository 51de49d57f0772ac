"""Input and output of commands: documents in files of JSON or Python, JSON from the command line, texts."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from server.cli import flow_file
from server.cli.common import Refused


def is_file(text: str) -> bool:
    """A path, not the name of a stored workflow."""
    return text == "-" or text.endswith(".json") or is_python(text) or os.sep in text or os.path.isfile(text)


def is_python(text: str) -> bool:
    """Return whether it names a Python file, or a workflow in one: `flow.py:name`."""
    path, colon, name = text.rpartition(":")
    return text.endswith(".py") or bool(colon and path.endswith(".py") and name.isidentifier())


def read_document(path: str) -> Any:
    """The JSON of a file, or what a Python file defines; `-` is stdin. Raises Refused."""
    return read_documents(path)[0]


def read_documents(path: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return the document, and those of the workflow functions that it calls. Raises Refused."""
    if is_python(path):
        return flow_file.read(path)
    return parse_json(read_text(path), path), []


def read_input(text: str | None, option: str = "--input") -> Any:
    """JSON from the command line, or from a file as `@FILE`; None without an option. Raises Refused."""
    if text is None:
        return None
    if text.startswith("@"):
        return parse_json(read_text(text[1:]), text[1:])
    return parse_json(text, option)


def parse_json(text: str, where: str) -> Any:
    """Raises Refused; `where` names the text in the message."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            f"Text needs double quotes, in a shell for example: {where} '{{\"amount\": 120}}'"
            if where.startswith("--")
            else "",
        ) from None


def read_text(path: str) -> str:
    """The text of a file in UTF-8; `-` is stdin. Raises Refused."""
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Refused(f"There is no file {path!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from None


def check_free(out: str | None, force: bool) -> None:
    """Raises Refused: there is a file `out`, which is not to be replaced."""
    if out is not None and not force and os.path.exists(out):
        raise Refused(f"{out} already exists.", "Use --force to replace it.")


def write_document(document: Any, out: str | None, *, as_python: bool = False) -> bool:
    """Write the document to `out`, or to stdout, and return whether it went to a file. Raises Refused."""
    if as_python:
        from compiler.builder.source import source

        text = source(document)
    else:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return False
    try:
        with open(out, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Refused(f"{out} cannot be written: {error.strerror or error}") from None
    return True
