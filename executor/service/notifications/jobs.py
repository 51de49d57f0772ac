"""Jobs of Kubernetes that `job` blocks wait for. A message of the channel `job` creates one, and is then due again: to
check if it has ended without calling back, and, when nothing waits for it any more, to delete it.

A Job has the name of its wait, so creating it twice is creating it once."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any, Final, NamedTuple

from executor.errors import AlreadyAnswered, AnswerInvalid, BlockError, NotFound
from executor.kernel.process.extras import install
from executor.kernel.run.links import token_of
from executor.kernel.store.topics.outbox import NotificationRow, NotificationStatus
from executor.service.topics.signals import Callbacks
from executor.service.topics.waits import Waits
from executor.service.views import WaitView

LOOK_MS: Final = 30_000  # also the time until the Job of a cancelled run is deleted
REQUEST_S: Final = 15.0
KEPT_S: Final = 86_400  # for its logs, after it has ended
_BATCH: Final = "batch/v1"


class Next(NamedTuple):
    status: NotificationStatus
    after_ms: int | None = None
    error: str | None = None


class KubernetesJobs:
    def __init__(self, waits: Waits, callbacks: Callbacks) -> None:
        self._waits = waits
        self._callbacks = callbacks

    async def attend(self, row: NotificationRow, target: dict[str, Any]) -> Next:
        """Raises StoreError."""
        try:
            wait = await self._waits.get(row.run_id, row.wait_id)
        except NotFound:  # its run was deleted meanwhile
            return Next("cancelled")
        namespace, name = target["namespace"], job_name(row)
        try:
            if wait.status == "answered":
                return Next("sent")  # it has called back, and ends by itself
            if wait.status != "pending":
                await _request("DELETE", namespace, name, json={"propagationPolicy": "Background"})
                return Next("cancelled")
            job = await _request("GET", namespace, name)
            if job is None and (row.error is not None or row.attempts <= 2):  # the latter: written before NOT_CREATED
                job = await _request("POST", namespace, json=manifest(row, target, wait))
                return Next("pending", LOOK_MS)
        except BlockError as error:
            if error.retryable:
                return Next("pending", LOOK_MS, error.message)
            await self._fail(wait, error.message)
            return Next("failed", None, error.message)
        if job is None:
            await self._fail(wait, f"the Job {name} was deleted")
            return Next("sent")
        ended = _ended(job)
        if ended is None:
            return Next("pending", LOOK_MS)
        succeeded, why = ended
        if succeeded:
            await self._succeed(wait, name)
        else:
            await self._fail(wait, f"the Job {name} failed: {why}")
        return Next("sent")

    async def _succeed(self, wait: WaitView, name: str) -> None:
        body = {"job": name, "status": "succeeded"}
        try:
            await self._callbacks.receive(token_of(wait.link or "", "callback"), body, {"user-agent": "Kubernetes"})
        except AnswerInvalid:
            await self._fail(wait, f"the Job {name} ended without calling back")
        except (AlreadyAnswered, NotFound):
            pass

    async def _fail(self, wait: WaitView, reason: str) -> None:
        with suppress(AlreadyAnswered, NotFound):
            await self._waits.cancel(wait.run, wait.id, by="Kubernetes", reason=reason)


def job_name(row: NotificationRow) -> str:
    """Return a name of at most 63 characters, the same at each try."""
    return "weft-" + hashlib.sha256(f"{row.run_id}:{row.wait_id}".encode()).hexdigest()[:40]


def manifest(row: NotificationRow, target: dict[str, Any], wait: WaitView) -> dict[str, Any]:
    """Return the Job. Kubernetes does not repeat it: the retries of the block do."""
    own = {
        "WEFT_CALLBACK_URL": wait.link or "",
        "WEFT_RUN": row.run_id,
        "WEFT_IDEMPOTENCY_KEY": f"{row.run_id}:{row.wait_id}",
    }
    container: dict[str, Any] = {
        "name": "job",
        "image": target["image"],
        "env": [{"name": key, "value": value} for key, value in {**target["env"], **own}.items()],
    }
    container |= {field: target[field] for field in ("command", "args", "resources") if target[field]}
    return {
        "apiVersion": _BATCH,
        "kind": "Job",
        "metadata": {"name": job_name(row), "labels": {"app.kubernetes.io/managed-by": "weft", "weft/run": row.run_id}},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def _ended(job: dict[str, Any]) -> tuple[bool, str] | None:
    """Return (True if it succeeded, the message of Kubernetes), or None if it has not ended."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return condition["type"] == "Complete", str(condition.get("message") or condition.get("reason") or "")
    return None


async def _request(method: str, namespace: str, name: str = "", json: Any = None) -> dict[str, Any] | None:
    """Return the answer of the API, or None if there is no such Job, or (POST) if it exists. Raises BlockError."""
    try:
        import kr8s
        import kr8s.asyncio
    except ImportError as error:
        raise BlockError(f"{install('kubernetes')}: {error}", code="adapter_missing", retryable=False) from error
    more = {} if json is None else {"json": json}
    try:
        api = await kr8s.asyncio.api()
        path = f"jobs/{name}" if name else "jobs"
        async with api.call_api(
            method, version=_BATCH, namespace=namespace, url=path, timeout=REQUEST_S, **more
        ) as answer:
            found: dict[str, Any] = answer.json()
            return found
    except kr8s.ServerError as error:
        code = error.response.status_code if error.response is not None else 0
        if code == (409 if method == "POST" else 404):
            return None
        message = f"Kubernetes answered {code}: {str(error)[:300]}"
        refused = 400 <= code < 500 and code not in (401, 403, 408, 409, 429)
        raise BlockError(message, code="job_refused", retryable=not refused) from error
    except Exception as error:
        message = f"Kubernetes cannot be reached: {type(error).__name__}: {str(error)[:300]}"
        raise BlockError(message, code="job_refused") from error
