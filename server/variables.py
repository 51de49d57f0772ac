"""The table of the WEFT_ variables. A new setting is a row of `Variables`, and its user.

Every command reads this, so it imports nothing heavy.
"""

import difflib
import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from server.reach import DATABASE_FILE, DEFAULT_DB, DEFAULT_HOST, DEFAULT_PORT, SettingsError

ENV_PREFIX = "WEFT_ENV_"
SECRET_PREFIX = "WEFT_SECRET_"  # noqa: S105 - the name of a variable, not a value
HOSTS_PREFIX = "WEFT_SECRET_HOSTS_"  # before SECRET_PREFIX, with which it begins
PLACES_PREFIX = "WEFT_SECRET_IN_"  # the same
MODEL_PREFIX = "WEFT_MODEL_"
PRICE_PREFIX = "WEFT_PRICE_"
CONCURRENCY_MAX = 1_000  # default of a worker; not imported, as each command reads settings
YEAR_S = 31_536_000
LogFormat = Literal["text", "json"]
# Variables that are no fields: of commands, of the installation, and another way to set WEFT_DB.
OTHERS = {
    "WEFT_DATA": f"the folder of {DATABASE_FILE}, its key and its token, in place of WEFT_DB",
    "WEFT_URL": "the server that commands and clients use",
    "WEFT_TO_TOKEN": "the token of the other server of `weft promote`",
    "WEFT_WEB": "for the installation: how the editor is built",
}
# The beginnings of variables with names of their own, in the order in which they are looked for.
PREFIXES = {
    ENV_PREFIX: "a value that workflows read as ${NAME}; nothing else of the environment is visible to them",
    HOSTS_PREFIX: "hosts that this secret may be sent to; without it nowhere",
    PLACES_PREFIX: "places in a request that it may stand in: header:<name>, query:<name>, path, body",
    SECRET_PREFIX: "a secret that ${NAME} reads; <NAME>_API_KEY is sent to the server of models <NAME> alone",
    MODEL_PREFIX: "URL of a server of language models, whose models are `<name>:<model>`",
    PRICE_PREFIX: "what these cost, in US dollars for a million tokens: input/cached input/output, or by model",
}
# Variables of a job's container, in which commands of weft may run.
OF_JOBS = ("WEFT_CALLBACK_URL", "WEFT_IDEMPOTENCY_KEY", "WEFT_RUN")
# Variables of the test suite and the benchmarks, which start servers and commands with them set.
OF_TESTS = frozenset(
    [
        "WEFT_BENCH_DIR", "WEFT_CHROMIUM", "WEFT_CLIENT", "WEFT_CONFORMANCE_DIR", "WEFT_CRASH_KILLS",
        "WEFT_CRASH_SEED", "WEFT_FUZZ_EXAMPLES", "WEFT_SIM_SEEDS", "WEFT_SIM_START", "WEFT_SOAK_SECONDS",
        "WEFT_TEST_DATABASE", "WEFT_TEST_POOL", "WEFT_TEST_POSTGRES", "WEFT_WEB_ROOT", "WEFT_WORLD_SEEDS",
        "WEFT_WORLD_START",
    ]
)  # fmt: skip
PREFIX_MIN = {4: 8, 6: 16}  # of networks of proxies: a shorter one would be most of the internet


def row(name: str, about: str, *, of: str = "", secret: bool = False, **bounds: Any) -> msgspec.Meta:
    """`name`: the variable. `about`: what it is for. `of`: what a number counts. `bounds`: as of msgspec.Meta."""
    return msgspec.Meta(extra={"name": name, "about": about, "of": of, "secret": secret, **bounds}, **bounds)


# A row is a line, or two.
# fmt: off
class Variables(msgspec.Struct, frozen=True):
    """The table of the settings: a row has the field, its type and bounds, the variable, what it is for, the default. A
    tuple is a list with commas. Settings that have names of their own, such as WEFT_ENV_<NAME>, are in PREFIXES."""

    host: Annotated[str, row("WEFT_HOST", "the address to listen on")] = DEFAULT_HOST
    port: Annotated[int, row(
        "WEFT_PORT", "the port to listen on; 0: a free one", ge=0, le=65_535)] = DEFAULT_PORT
    db_path: Annotated[str, row(
        "WEFT_DB", "the SQLite file, or a postgresql:// address, which needs WEFT_SECRET_KEY and WEFT_TOKEN"
    )] = DEFAULT_DB
    bus_address: Annotated[str, row(
        "WEFT_BUS_DB", "direct address of that database for wake-ups, if WEFT_DB leads to a pooler")] | None = None
    token: Annotated[str, row(
        "WEFT_TOKEN", "token for /api; without it a file has one; `off`: none, on loopback alone", secret=True
    )] | None = None
    allowed_hosts: Annotated[tuple[str, ...], row(
        "WEFT_ALLOWED_HOSTS", "more names for the Host header, with or without a port")] = ()
    public_url: Annotated[str, row(
        "WEFT_BASE_URL", "how this server is reached from outside, for links and ${WEFT_BASE_URL}")] | None = None
    proxies: Annotated[tuple[str, ...], row(
        "WEFT_BEHIND_PROXY", "reverse proxies whose X-Forwarded headers count; needs WEFT_BASE_URL")] = ()
    allow_private: Annotated[tuple[str, ...], row(
        "WEFT_ALLOW_PRIVATE", "private networks and `host:port` that the http block may reach")] = ()
    secret_key: Annotated[str, row(
        "WEFT_SECRET_KEY", "seals resume links; without it a key file is made", secret=True)] | None = None
    old_secret_key: Annotated[str, row(
        "WEFT_OLD_SECRET_KEY", "the key before, until what it sealed has ended; `lost` if it is lost", secret=True
    )] | None = None
    secrets_command: Annotated[str, row(
        "WEFT_SECRETS_COMMAND", "a program that is asked for secrets that are not stored", secret=True)] | None = None
    unbound_secrets: Annotated[bool, row(
        "WEFT_UNBOUND_SECRETS", "true: secrets of the environment may stand and be sent everywhere")] = False
    not_secret: Annotated[tuple[str, ...], row(
        "WEFT_NOT_SECRET", "names of WEFT_ENV_ values that may be recorded and shown")] = ()
    mail_transport: Annotated[Literal["log", "smtp"], row(
        "WEFT_MAIL_TRANSPORT", "`log` writes mails to the log, `smtp` sends them")] = "log"
    mail_sender: Annotated[str, row("WEFT_MAIL_FROM", "the sender of mails")] = "weft@localhost"
    mail_host: Annotated[str, row("WEFT_MAIL_HOST", "the mail server")] = "127.0.0.1"
    mail_port: Annotated[int, row("WEFT_MAIL_PORT", "its port; 465 is TLS from the start", ge=1, le=65_535)] = 587
    mail_username: Annotated[str, row("WEFT_MAIL_USER", "the user at the mail server")] | None = None
    mail_password: Annotated[str, row("WEFT_MAIL_PASSWORD", "the password of that user", secret=True)] | None = None
    mail_start_tls: Annotated[bool, row("WEFT_MAIL_STARTTLS", "true: only with STARTTLS; false: without")] | None = None
    notify_email: Annotated[tuple[str, ...], row(
        "WEFT_NOTIFY_EMAIL", "mail addresses notified of every wait for a person")] = ()
    notify_webhook: Annotated[str, row(
        "WEFT_NOTIFY_WEBHOOK", "a URL notified of the same by a signed POST", secret=True)] | None = None
    alert_email: Annotated[tuple[str, ...], row(
        "WEFT_ALERT_EMAIL", "mail addresses notified of failed runs and missed times of schedules")] = ()
    alert_webhook: Annotated[str, row(
        "WEFT_ALERT_WEBHOOK", "a URL notified of the same by a signed POST", secret=True)] | None = None
    alert_waiting_s: Annotated[float, row(
        "WEFT_ALERT_WAITING_S", "and of waits open for longer", of="seconds", ge=1, le=YEAR_S)] | None = None
    alert_queued_s: Annotated[float, row(
        "WEFT_ALERT_QUEUED_S", "and of runs not begun for longer", of="seconds", ge=1, le=YEAR_S)] | None = None
    error_workflow: Annotated[str, row(
        "WEFT_ERROR_WORKFLOW", "a workflow that is started for each run that fails")] | None = None
    oidc_issuer: Annotated[str, row(
        "WEFT_OIDC_ISSUER", "the OpenID Connect provider that signs people in")] | None = None
    oidc_client_id: Annotated[str, row("WEFT_OIDC_CLIENT_ID", "the id of weft at that provider")] = ""
    oidc_client_secret: Annotated[str, row(
        "WEFT_OIDC_CLIENT_SECRET", "the secret of weft at that provider", secret=True)] | None = None
    oidc_name: Annotated[str, row("WEFT_OIDC_NAME", "the name of the provider, for the button")] | None = None
    oidc_role: Annotated[str, row("WEFT_OIDC_ROLE", "the role of people who are in none of the groups")] | None = None
    oidc_domains: Annotated[tuple[str, ...], row(
        "WEFT_OIDC_DOMAINS", "domains of the mail addresses that may sign in")] = ()
    oidc_groups: Annotated[tuple[str, ...], row("WEFT_OIDC_GROUPS", "roles by group, `group=role`")] = ()
    oidc_groups_claim: Annotated[str, row("WEFT_OIDC_GROUPS_CLAIM", "the claim that has the groups")] = "groups"
    oidc_scopes: Annotated[tuple[str, ...], row(
        "WEFT_OIDC_SCOPES", "the scopes to ask for")] = ("openid", "email", "profile")
    oidc_private: Annotated[bool, row("WEFT_OIDC_PRIVATE", "true: the provider may be at a private address")] = False
    functions: Annotated[tuple[str, ...], row(
        "WEFT_FUNCTIONS", "Python functions for workflows: `module:function`, or modules or files of steps")] = ()
    processes: Annotated[int, row(
        "WEFT_PROCESSES", "child processes at the same time; one for each core", ge=1, le=1_000)] | None = None
    dask: Annotated[str, row("WEFT_DASK", "the scheduler of a Dask cluster, tcp://host:port")] | None = None
    kubernetes: Annotated[tuple[str, ...], row(
        "WEFT_KUBERNETES", "namespaces in which `job` blocks may create Jobs, the default first")] = ()
    connectors: Annotated[str, row("WEFT_CONNECTORS", "a folder of connector documents, *.json")] | None = None
    packages: Annotated[str, row(
        "WEFT_PACKAGES", "a signed index of packages for `weft add`: a file or an address")] | None = None
    packages_key: Annotated[str, row("WEFT_PACKAGES_KEY", "the public key of that index, in base64")] | None = None
    sqlite_folders: Annotated[tuple[str, ...], row(
        "WEFT_SQLITE_FOLDERS", "folders of the files of `sql` blocks; else `databases` beside the database file")] = ()
    file_folders: Annotated[tuple[str, ...], row(
        "WEFT_FILE_FOLDERS", "folders whose files may start runs, by `event.file`")] = ()
    # A lease is renewed three times while it lasts: shorter ones would be lost to a slow disk, longer ones keep a run
    # asleep.
    lease_ms: Annotated[int, row(
        "WEFT_LEASE_MS", "how long runs of a killed process wait", of="milliseconds", ge=1_000, le=3_600_000)] = 15_000
    pools: Annotated[tuple[str, ...], row("WEFT_POOLS", "pools whose runs this process executes; else `default`")] = ()
    concurrency: Annotated[int, row(
        "WEFT_CONCURRENCY", "runs that this process executes at the same time", of="runs", ge=1, le=CONCURRENCY_MAX
    )] = CONCURRENCY_MAX
    lanes: Annotated[int, row(
        "WEFT_LANES", "durable functions that stay in memory while they wait; 0 for none", ge=0, le=100_000)] = 1_000
    queue_max: Annotated[int, row(
        "WEFT_QUEUE_MAX", "runs of one pool that may wait; more are refused with 429", of="runs", ge=1)] | None = None
    file_max: Annotated[int, row("WEFT_FILE_MAX", "the largest file", of="MiB", ge=1, le=2_048)] = 100
    retention_days: Annotated[float, row(
        "WEFT_RETENTION_DAYS", "runs that ended longer ago are deleted", of="days", gt=0, le=36_500)] | None = None
    metrics_host: Annotated[str, row(
        "WEFT_METRICS_HOST", "the address of the port of metrics; 0.0.0.0 in a container")] = DEFAULT_HOST
    metrics_port: Annotated[int, row(
        "WEFT_METRICS_PORT", "a port with /metrics and /healthz, without a token; 0: a free one", ge=0, le=65_535
    )] | None = None
    otlp_endpoint: Annotated[str, row(
        "WEFT_OTLP_ENDPOINT", "a collector of OpenTelemetry for traces of runs, http://host:4_318")] | None = None
    otlp_headers: Annotated[str, row("WEFT_OTLP_HEADERS", "headers for it, `name=value`", secret=True)] | None = None
    read_only: Annotated[bool, row("WEFT_READ_ONLY", "true: show everything, execute and change nothing")] = False
    log_level: Annotated[Literal["debug", "info", "warning", "error"], row(
        "WEFT_LOG", "the level of the log")] = "warning"
    log_format: Annotated[LogFormat, row(
        "WEFT_LOG_FORMAT", "`json`: one object for each line of the log")] = "text"
# fmt: on


def _row_of(annotation: Any) -> dict[str, Any]:
    annotated = annotation if hasattr(annotation, "__metadata__") else get_args(annotation)[0]  # else of `... | None`
    found: dict[str, Any] = annotated.__metadata__[0].extra
    return found


ROWS = {field: _row_of(annotation) for field, annotation in Variables.__annotations__.items()}
FIELDS = {row["name"]: field for field, row in ROWS.items()}
KNOWN = (*FIELDS, *OTHERS)


def check_names(environ: Mapping[str, str]) -> None:
    """Raise SettingsError for a WEFT_ name that does not exist: a misspelt setting would have no effect."""
    for name in sorted(environ):
        if not name.startswith("WEFT_") or name in (*KNOWN, *OF_JOBS) or name in OF_TESTS:
            continue
        if name.startswith(tuple(PREFIXES)):
            continue
        own = {known.removeprefix("WEFT_"): known for known in KNOWN}
        near = difflib.get_close_matches(name.removeprefix("WEFT_"), own, n=1)
        hint = (
            f"did you mean {own[near[0]]}?"
            if near
            else f"values for workflows have the form {ENV_PREFIX}<NAME>; docs/howto/run-in-production.md has the list"
        )
        raise SettingsError(f"unknown setting {name}; {hint}")


def network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """An address, or a network that is not most of the internet. Raises ValueError."""
    try:
        found = ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an address or a network") from None
    if found.prefixlen < PREFIX_MIN[found.version]:
        raise ValueError(f"{text!r} has too many addresses")
    return found
