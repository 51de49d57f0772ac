"""Calls whose result or effect differs from one entry of a durable function to the next, by their full names."""

from __future__ import annotations

import ast
from typing import Final

_CLOCK: Final = {
    *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")),
    *(f"time.{name}" for name in ("process_time", "process_time_ns", "thread_time", "sleep")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
}
_CLOCK_WITHOUT: Final = {f"time.{name}" for name in ("localtime", "gmtime", "ctime", "asctime")}  # an argument
_RANDOM: Final = ("random.", "secrets.", "numpy.random.")
_SEEDED: Final = {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState"}
_UUID: Final = {f"uuid.uuid{n}" for n in (1, 4, 6, 7)}
_ENV: Final = {"os.environ", "os.environb", "sys.argv"}
_THREAD: Final = (
    "threading.Thread", "threading.Timer", "_thread.", "concurrent.futures.", "multiprocessing.", "asyncio.to_thread",
    "asyncio.run", "asyncio.new_event_loop", "asyncio.Runner",
)  # fmt: skip
_IO: Final = (
    "builtins.open", "builtins.input", "io.open", "requests.", "urllib.request.", "http.client.", "ftplib.", "smtplib.",
    "imaplib.", "poplib.", "socket.", "ssl.", "sqlite3.", "subprocess.", "shutil.", "tempfile.", "glob.", "aiosqlite.",
    "aiohttp.", "asyncpg.", "psycopg.", "psycopg2.", "pymongo.", "redis.", "boto3.", "openai.", "anthropic.", "stripe.",
    "webbrowser.", "asyncio.open_", "asyncio.start_", "asyncio.create_subprocess_",
    *(f"httpx.{name}" for name in ("get", "post", "put", "patch", "delete", "head", "options", "request", "stream")),
    "httpx.Client", "httpx.AsyncClient",
)  # fmt: skip
_OS_PURE: Final = {"os.fspath", "os.fsencode", "os.fsdecode"}
_OS_PATH_IO: Final = {
    f"os.path.{name}"
    for name in (
        *("exists", "lexists", "isfile", "isdir", "islink", "ismount", "getsize", "getmtime", "getctime", "getatime"),
        *("abspath", "realpath", "expanduser", "expandvars", "samefile"),
    )
}
_PATH_READS: Final = {"read_text", "read_bytes", "write_text", "write_bytes"}  # of whatever has them
_PATH_IO: Final = _PATH_READS | {
    "absolute", "chmod", "cwd", "exists", "expanduser", "glob", "hardlink_to", "home", "is_dir", "is_file", "iterdir",
    "lstat", "mkdir", "open", "rename", "replace", "resolve", "rglob", "rmdir", "stat", "symlink_to", "touch", "unlink",
    "walk",
}  # fmt: skip
_DIFFER: Final = {
    "durable_clock": "returns another time in each entry",
    "durable_random": "draws another number in each entry",
    "durable_uuid": "makes another id in each entry",
    "durable_io": "is done again in each entry, and may differ",
    "durable_env": "reads the environment, which may differ in each entry",
    "durable_thread": "starts a thread or an event loop, which a durable function cannot",
    "durable_id": "differs from process to process",
}


def of_call(name: str, call: ast.Call) -> tuple[str, str] | None:
    """Return the code of a call by its full name, and what is wrong with it."""
    code = _code_of(name, call)
    if code is None:
        return None
    shown = name.removeprefix("builtins.")
    differs = "blocks all runs of the process" if name == "time.sleep" else _DIFFER[code]
    return code, f"`{shown}()` {differs}"


def of_value(name: str) -> tuple[str, str] | None:
    """As `of_call`, of a name that is read."""
    return ("durable_env", f"`{name}` {_DIFFER['durable_env'].removeprefix('reads ')}") if name in _ENV else None


def of_method(method: str, *, of_path: bool) -> tuple[str, str] | None:
    """As `of_call`, of a method of a value; `of_path`: that is a pathlib.Path."""
    if method in (_PATH_IO if of_path else _PATH_READS):
        return "durable_io", f"`.{method}()` {_DIFFER['durable_io']}"
    if method == "run_in_executor":
        return "durable_thread", f"`.{method}()` {_DIFFER['durable_thread']}"
    return None


def _code_of(name: str, call: ast.Call) -> str | None:
    given = bool(call.args or call.keywords)
    if name in _CLOCK or (name in _CLOCK_WITHOUT and not given):
        return "durable_clock"
    if name == "os.urandom" or (name.startswith(_RANDOM) and not (name in _SEEDED and given)):
        return "durable_random"
    if name in _UUID:
        return "durable_uuid"
    if name == "os.getenv" or name.startswith("platform."):
        return "durable_env"
    if name in ("builtins.id", "builtins.hash"):
        return "durable_id"
    if name.startswith(_THREAD):
        return "durable_thread"
    if name.endswith(("Error", "Exception", "Expired")):
        return None
    is_os = name.startswith("os.") and not name.startswith(("os.path.", "os.environ")) and name not in _OS_PURE
    return "durable_io" if is_os or name in _OS_PATH_IO or name.startswith(_IO) else None
