"""Telling people and programs that a run waits for them: messages, the outbox they lie in, and how they get out.

`messages.py` makes them, in the append that opens the wait; `outbox.py` sends them; `seal.py` keeps secrets out of the
database meanwhile.
"""
