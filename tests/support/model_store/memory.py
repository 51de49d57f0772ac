"""What agents remember, in the model store."""

from __future__ import annotations

from executor.kernel.store.topics.memory import CONVERSATIONS_SHOWN, TURNS_MAX, Conversation, MemoryHead, MemoryTurn


class ModelMemory:
    """What ModelStore can do with memories."""

    def __init__(self) -> None:
        super().__init__()
        self._memory: dict[Conversation, list[MemoryTurn]] = {}

    async def remember(self, conversation: Conversation, turn: MemoryTurn) -> bool:
        turns = self._memory.setdefault(conversation, [])
        if any(one.turn == turn.turn for one in turns):
            return False
        turns.append(turn)
        del turns[:-TURNS_MAX]
        return True

    async def recall(self, conversation: Conversation, limit: int) -> list[MemoryTurn]:
        return self._memory.get(conversation, [])[-limit:]

    async def list_memories(self, workflow: str | None = None, limit: int = CONVERSATIONS_SHOWN) -> list[MemoryHead]:
        heads = [
            MemoryHead(
                place.workflow,
                place.scope,
                place.key,
                len(turns),
                sum(len(turn.messages) for turn in turns),
                max(turn.at_ms for turn in turns),
            )
            for place, turns in self._memory.items()
            if workflow is None or place.workflow == workflow
        ]
        return sorted(heads, key=lambda head: (-head.last_at_ms, head.workflow, head.scope, head.key))[:limit]

    async def forget(self, conversation: Conversation) -> int:
        return len(self._memory.pop(conversation, []))

    async def delete_old_memory(self, before_ms: int, limit: int) -> int:
        every = [(turn.at_ms, place, turn) for place, turns in self._memory.items() for turn in turns]
        old = sorted((one for one in every if one[0] < before_ms), key=lambda one: one[0])[:limit]
        for _, place, turn in old:
            self._memory[place].remove(turn)
            if not self._memory[place]:
                del self._memory[place]
        return len(old)

    def _forget_workflow(self, name: str) -> None:
        for place in [place for place in self._memory if place.workflow == name]:
            del self._memory[place]
