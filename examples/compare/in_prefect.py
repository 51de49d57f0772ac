"""The five workflows in Prefect. A flow that is run again gets the stored results of its tasks, which are kept by their
inputs and their source."""

import json
import sys
import time

from prefect import flow, task
from prefect.cache_policies import INPUTS, TASK_SOURCE
from prefect.flow_runs import pause_flow_run

from examples.compare import outside

stored = {"persist_result": True, "cache_policy": INPUTS + TASK_SOURCE}
fetch = task(outside.fetch, retries=2, retry_delay_seconds=0.1, **stored)
parse, store = task(outside.parse, **stored), task(outside.store, **stored)
count, total = task(outside.count, **stored), task(outside.total, **stored)
draft, publish = task(outside.draft, **stored), task(outside.publish, **stored)
before, after = task(outside.before, **stored), task(outside.after, **stored)
by_card, by_invoice = task(outside.by_card, **stored), task(outside.by_invoice, **stored)
apologise = task(outside.apologise, **stored)
deadline = task(lambda seconds: time.time() + seconds, name="deadline", **stored)


@flow
def chain() -> int:
    return store(parse(fetch()))


@flow
def fan(words: list[str]) -> int:
    return total(count.map(words).result())


@flow
def approval() -> str:
    text = draft()
    answer = pause_flow_run(wait_for_input=str, timeout=86_400)  # the process stays and asks the server
    return publish(text) if answer == "approve" else "rejected"


@flow
def sleep() -> str:
    first = before()
    until = deadline(6)
    time.sleep(max(0, until - time.time()))
    return after(first)


@flow
def branch(amount: int) -> str:
    if amount > 100:
        return by_invoice(amount)
    try:
        return by_card(amount)
    except ValueError as error:
        return apologise(str(error))


# --- run

INPUTS_OF: dict[str, list[object]] = {"fan": [["a", "bb", "ccc"]], "branch": [5]}
FLOWS = {"chain": chain, "fan": fan, "approval": approval, "sleep": sleep, "branch": branch}


def answer_open(answer: str) -> None:
    """From another process: the run that is paused gets its input."""
    import asyncio

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.flow_runs import resume_flow_run

    async def go() -> None:
        async with get_client() as client:
            runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state={"type": {"any_": ["PAUSED"]}}))
            for run in runs:
                await resume_flow_run(run.id, run_input={"value": answer})

    asyncio.run(go())


def main(name: str, folder: str, answer: str | None = None) -> None:
    if answer:
        return answer_open(answer)
    print(json.dumps(FLOWS[name](*INPUTS_OF.get(name, []))))


if __name__ == "__main__":
    main(*sys.argv[1:])
