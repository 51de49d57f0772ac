"""A store of one run, `r`, that holds only its records: for readers of journals, which need no more."""

from __future__ import annotations

from executor.kernel.store.run_rows import EventFilter, Record


class RecordStore:
    """`limits`: the size of each page that was asked for."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.limits: list[int] = []
        self.blobs: dict[str, bytes] = {}

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        assert run_id == "r"
        self.limits.append(limit)
        return self.records[after : after + limit]

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        self.limits.append(where.limit)
        found = [
            record
            for record in self.records
            if where.node in (None, record.node)
            and where.path in (None, record.path)
            and (not where.types or record.type in where.types)
        ]
        return [record for record in found if record.seq > where.after][: where.limit], len(found)

    async def get_blob(self, hash: str) -> bytes | None:
        return self.blobs.get(hash)

    async def get_plan(self, hash: str) -> bytes | None:
        return None
