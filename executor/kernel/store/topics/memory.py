"""Memory of agents between runs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from executor.errors import Conflict
from executor.kernel.store.statements import Readers, Tx, columns

TURNS_MAX: Final = 200  # of one conversation; older ones are deleted
CONVERSATIONS_SHOWN: Final = 200


class Conversation(Struct, frozen=True):
    """The key of a memory: `key` within a workflow, or within a scope that workflows share. One of the two is empty."""

    workflow: str
    scope: str
    key: str


class MemoryTurn(Struct, frozen=True):
    """A turn: a question and its answer. `turn` is the run and the node that ended it; `messages` a JSON list."""

    turn: str
    run_id: str
    at_ms: int
    messages: bytes


class MemoryHead(Conversation, frozen=True):
    """A conversation: how many turns it has and how long they are, and when the last one ended."""

    turns: int
    bytes: int
    last_at_ms: int


TURN = columns(MemoryTurn)
OF = "workflow = :workflow AND scope = :scope AND key = :key"
# No row: another process has written this turn, or one with this number, meanwhile.
ADD = f"""
INSERT INTO agent_memory (workflow, scope, key, n, {TURN})
SELECT :workflow, :scope, :key, coalesce(max(n), 0) + 1, :turn, :run_id, :at_ms, :messages
  FROM agent_memory WHERE {OF}
ON CONFLICT DO NOTHING RETURNING n"""
FORGET_OLD = f"DELETE FROM agent_memory WHERE {OF} AND n <= :upto"
RECALL = f"SELECT {TURN} FROM agent_memory WHERE {OF} ORDER BY n DESC LIMIT :limit"
HEADS = """
SELECT workflow, scope, key, count(*), CAST(sum(length(messages)) AS bigint), max(at_ms)
  FROM agent_memory {where} GROUP BY workflow, scope, key
 ORDER BY max(at_ms) DESC, workflow, scope, key LIMIT :limit"""
ALL_HEADS = HEADS.format(where="")
HEADS_OF = HEADS.format(where="WHERE workflow = :workflow")
DELETE_OLD = """
DELETE FROM agent_memory WHERE at_ms < :before AND (workflow, scope, key, n) IN
       (SELECT workflow, scope, key, n FROM agent_memory WHERE at_ms < :before ORDER BY at_ms LIMIT :limit)"""
TRIES_MAX = 100  # each one that fails is a turn that another process has written meanwhile


def remember(tx: Tx, conversation: Conversation, turn: MemoryTurn) -> bool:
    """Add a turn after those that are there, and delete the oldest of more than TURNS_MAX. Returns False, with nothing
    written, if this turn was written before."""
    place = asdict(conversation)
    values = {**place, **asdict(turn)}
    for _ in range(TRIES_MAX):
        if tx.rows(f"SELECT 1 FROM agent_memory WHERE {OF} AND turn = :turn", {**place, "turn": turn.turn}):
            return False
        if added := tx.rows(ADD, values):
            tx.run(FORGET_OLD, {**place, "upto": added[0][0] - TURNS_MAX})
            return True
    raise Conflict(f"many processes write to the memory {conversation.key[:100]!r} at once", hint="try again")


async def recall(readers: Readers, conversation: Conversation, limit: int) -> list[MemoryTurn]:
    """Return the last `limit` turns, in the order in which they ended."""
    return (await readers.fetch(MemoryTurn, RECALL, {**asdict(conversation), "limit": limit}))[::-1]


async def list_memories(
    readers: Readers, workflow: str | None = None, limit: int = CONVERSATIONS_SHOWN
) -> list[MemoryHead]:
    """Return memories of a workflow, or of all and of all scopes: those with the latest turn first."""
    query = ALL_HEADS if workflow is None else HEADS_OF
    return await readers.fetch(MemoryHead, query, {"workflow": workflow, "limit": limit})


def forget(tx: Tx, conversation: Conversation) -> int:
    """Delete a conversation. Returns how many turns it had."""
    return tx.run(f"DELETE FROM agent_memory WHERE {OF}", asdict(conversation))


def forget_workflow(tx: Tx, workflow: str) -> None:
    tx.run("DELETE FROM agent_memory WHERE workflow = :workflow", {"workflow": workflow})


def delete_old_memory(tx: Tx, before_ms: int, limit: int) -> int:
    """Delete at most `limit` turns that ended before this time. Returns how many."""
    return tx.run(DELETE_OLD, {"before": before_ms, "limit": limit})
