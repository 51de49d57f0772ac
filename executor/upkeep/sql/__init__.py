"""Read-only SQL on a database for people, and the views they look through.

`asking` has what all databases have; `views` says which views there are, one for each block with a known
output; `sqlite` and `postgres` are how each database makes them and refuses everything but reading.
"""
