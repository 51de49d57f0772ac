"""Read-only SQL on a database for people, and its views.

`asking` has the common part of all databases; `views` lists the views, one for each block with a known output; `sqlite`
and `postgres` make them in each database and refuse everything but reading.
"""
