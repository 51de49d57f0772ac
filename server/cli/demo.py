"""`weft demo`: shows what weft does, without an installation of anything else."""

from __future__ import annotations

import subprocess
from importlib import import_module

import click

from server.cli.common import Refused
from server.shipped import examples_package


@click.command()
@click.option("--fleet", is_flag=True, required=True, help="Servers and workers on a PostgreSQL of their own.")
@click.option("--servers", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option("--workers", type=click.IntRange(1, 16), default=3, show_default=True)
@click.option(
    "--runs-per-s", type=click.FloatRange(0.1, 200), default=8.0, show_default=True, help="How many runs are started."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8760, show_default=True, help="Of the page. 0: a free one."
)
def demo(fleet: bool, servers: int, workers: int, runs_per_s: float, port: int) -> None:
    """Show a fleet that shares its work while parts are killed.

    Needs the libraries of the extra `demo`. It listens on 127.0.0.1 alone, in a temporary folder that it
    deletes at the end.
    """
    example = import_module(f"{examples_package()}.fleet.run")
    try:
        example.show(servers, workers, runs_per_s, port, click.echo)
    except example.ProgramsMissing as error:
        raise Refused(f"{error}") from None
    except subprocess.CalledProcessError as error:
        raise Refused(f"initdb failed: {error.stderr.decode(errors='replace').strip()}") from None
    except (OSError, RuntimeError) as error:
        raise Refused(f"{error}", "Another program may use the port: choose one with --port.") from None
    except KeyboardInterrupt:
        pass


COMMANDS = (demo,)
