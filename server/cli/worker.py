"""`weft worker`: executes runs in this process, beside servers on the same database."""

from __future__ import annotations

import os

import click

from server.variables import SettingsError

REFUSED = 2  # as of `weft serve`


@click.command()
@click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file on this machine (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=8.0,
    show_default=True,
    help="Seconds that running blocks have to end when the worker stops.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics and /healthz on this port (WEFT_METRICS_PORT). 0: a free one.",
)
@click.option(
    "--metrics-host",
    help="The address of that port, else 127.0.0.1 (WEFT_METRICS_HOST). Use 0.0.0.0 in a container.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    help="Runs to execute at the same time; those that wait do not count (WEFT_CONCURRENCY, or 1000).",
)
@click.option("--pool", "pools", multiple=True, help="Execute runs of this pool; repeatable (WEFT_POOLS, or default).")
def worker(
    db: str | None,
    grace: float,
    metrics_port: int | None,
    metrics_host: str | None,
    concurrency: int | None,
    pools: tuple[str, ...],
) -> int:
    """Execute runs, without a web server.

    Start as many as you like beside one or more `weft serve`, with the same settings. SIGTERM drains it: it claims
    nothing more, gives running blocks their grace and hands its runs to the other workers.
    """
    from server.settings import load_settings
    from server.worker import work

    environ = dict(os.environ)
    if db is not None:
        environ |= {"WEFT_DB": db, "WEFT_DATA": ""}
    if concurrency is not None:
        environ["WEFT_CONCURRENCY"] = str(concurrency)
    if metrics_port is not None:
        environ["WEFT_METRICS_PORT"] = str(metrics_port)
    if metrics_host is not None:
        environ["WEFT_METRICS_HOST"] = metrics_host
    if pools:
        environ["WEFT_POOLS"] = ",".join(pools)
    try:
        settings = load_settings(environ, serves=False)
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        return REFUSED
    return work(settings, grace_s=grace)


COMMANDS = (worker,)
