"""Telling people and programs that a run waits for them.

The append that opens the wait writes a row for each message (`kernel.run.recorder`), sealed so that no secret is
in the database (`executor.kernel.values.redact`). `outbox.py` sends them; `messages.py` has their texts.
"""
