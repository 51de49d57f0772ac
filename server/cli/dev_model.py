"""`weft dev-model`: a server of language models on this machine that answers from a script."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from threading import Thread

import click

from server.cli.common import OK, Refused


@click.command("dev-model")
@click.option("--port", type=click.IntRange(0, 65535), default=8790, show_default=True, help="0: a free one.")
@click.option("--script", type=click.Path(path_type=Path, dir_okay=False), help="What it answers, as JSON.")
@click.option("--until-eof", is_flag=True, hidden=True, help="End when stdin does: with the process that started it.")
def dev_model(port: int, script: Path | None, until_eof: bool) -> None:
    """Serve a language model that answers from a script.

    For tests, and for examples without a key.

    It listens on 127.0.0.1 alone and speaks the wire formats of OpenAI and Anthropic. Without a script it plays those
    of the examples. Without a fitting rule it repeats the message, or returns example values if the request has an
    output schema. `GET /calls` lists the requests it received.

    The format of the script is in docs/howto/agents.md.
    """
    from server.dev_model.app import HOST, build_server
    from server.dev_model.script import of_examples, read_script

    try:
        read = of_examples() if script is None else read_script(script.read_bytes())
    except OSError as error:
        raise Refused(f"{script}: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{script}: {error}") from None

    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()  # from here on clients can connect, and wait until it serves
    except OSError as error:
        listening.close()
        raise Refused(f"{error}", "Another program may use the port: choose one with --port.") from None
    url = f"http://{HOST}:{listening.getsockname()[1]}/v1"
    click.echo(f"dev-model: {url}\nStart the server with: WEFT_MODEL_DEV={url} weft serve")
    sys.stdout.flush()
    if until_eof:
        Thread(target=_end_with_stdin, daemon=True).start()
    try:
        build_server(read).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(OK)


COMMANDS = (dev_model,)
