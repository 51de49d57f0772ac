"""The five workflows in DBOS."""

import json
import os
import sys
import time
from pathlib import Path

from dbos import DBOS, SetWorkflowID

from examples.compare import outside

fetch = DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.1)(outside.fetch)
parse, store = DBOS.step()(outside.parse), DBOS.step()(outside.store)
count, total = DBOS.step()(outside.count), DBOS.step()(outside.total)
draft, publish = DBOS.step()(outside.draft), DBOS.step()(outside.publish)
before, after = DBOS.step()(outside.before), DBOS.step()(outside.after)
by_card, by_invoice = DBOS.step()(outside.by_card), DBOS.step()(outside.by_invoice)
apologise = DBOS.step()(outside.apologise)


@DBOS.workflow()
def chain() -> int:
    return store(parse(fetch()))


@DBOS.workflow()
def count_one(word: str) -> int:
    return count(word)


@DBOS.workflow()
def fan(words: list[str]) -> int:
    handles = [DBOS.start_workflow(count_one, word) for word in words]
    return total([handle.get_result() for handle in handles])


@DBOS.workflow()
def approval() -> str:
    text = draft()
    answer = DBOS.recv("answer", timeout_seconds=86_400)
    return publish(text) if answer == "approve" else "rejected"


@DBOS.workflow()
def sleep() -> str:
    first = before()
    DBOS.sleep(6)
    return after(first)


@DBOS.workflow()
def branch(amount: int) -> str:
    if amount > 100:
        return by_invoice(amount)
    try:
        return by_card(amount)
    except ValueError as error:
        return apologise(str(error))


# --- run

INPUTS: dict[str, list[object]] = {"fan": [["a", "bb", "ccc"]], "branch": [5]}
FLOWS = {"chain": chain, "fan": fan, "approval": approval, "sleep": sleep, "branch": branch}


def main(name: str, folder: str, answer: str | None = None) -> None:
    database = f"sqlite:///{Path(folder, 'dbos.db')}"
    DBOS(config={"name": "compare", "system_database_url": database, "run_admin_server": False, "log_level": "ERROR"})
    DBOS.launch()  # continues the workflows of this executor that were open
    with SetWorkflowID(name):
        handle = DBOS.start_workflow(FLOWS[name], *INPUTS.get(name, []))
    if answer:
        DBOS.send(name, answer, "answer")
    if name == "approval" and not answer:
        while not outside.calls(Path(folder), "draft"):
            time.sleep(0.1)
        print("waiting", flush=True)
        os._exit(0)  # a server would stay: DBOS.destroy waits for what is under way
    print(json.dumps(handle.get_result()))


if __name__ == "__main__":
    main(*sys.argv[1:])
    DBOS.destroy()
