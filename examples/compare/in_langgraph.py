"""The five workflows in LangGraph, by its functional API."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, RetryPolicy, interrupt

from examples.compare import outside

fetch = task(outside.fetch, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.1))
parse, store = task(outside.parse), task(outside.store)
count, total = task(outside.count), task(outside.total)
draft, publish = task(outside.draft), task(outside.publish)
before, after = task(outside.before), task(outside.after)
by_card, by_invoice = task(outside.by_card), task(outside.by_invoice)
apologise = task(outside.apologise)
deadline = task(lambda seconds: time.time() + seconds, name="deadline")


def workflows(saver: SqliteSaver) -> dict[str, Any]:
    @entrypoint(checkpointer=saver)
    def chain(_: str) -> int:
        return store(parse(fetch().result()).result()).result()

    @entrypoint(checkpointer=saver)
    def fan(words: list[str]) -> int:
        return total([one.result() for one in [count(word) for word in words]]).result()

    @entrypoint(checkpointer=saver)
    def approval(_: str) -> str:
        text = draft().result()
        answer = interrupt(f"Publish {text}?")
        return publish(text).result() if answer == "approve" else "rejected"

    @entrypoint(checkpointer=saver)
    def sleep(_: str) -> str:  # there is no timer: the end is stored, and the process waits
        first = before().result()
        until = deadline(6).result()
        time.sleep(max(0, until - time.time()))
        return after(first).result()

    @entrypoint(checkpointer=saver)
    def branch(amount: int) -> str:
        if amount > 100:
            return by_invoice(amount).result()
        try:
            return by_card(amount).result()
        except ValueError as error:
            return apologise(str(error)).result()

    return {"chain": chain, "fan": fan, "approval": approval, "sleep": sleep, "branch": branch}


# --- run

INPUTS = {"fan": ["a", "bb", "ccc"], "branch": 5}


def main(name: str, folder: str, answer: str | None = None) -> None:
    with SqliteSaver.from_conn_string(str(Path(folder, "langgraph.db"))) as saver:
        flow = workflows(saver)[name]
        config = {"configurable": {"thread_id": name}}
        begun = flow.get_state(config).next
        given = Command(resume=answer) if answer else None if begun else INPUTS.get(name, "begin")
        result = flow.invoke(given, config, durability="sync")
        waits = isinstance(result, dict) and "__interrupt__" in result
        print("waiting" if waits else json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
