"""The monkey: servers, workers and a PostgreSQL of their own that are killed, frozen and cut off while they work, and a
judge who asks in the end whether it can be seen in anything."""
