"""The linter of durable functions: it reads their source, and finds what may differ from one entry to the next.

`rules` are the codes and their hints, `outside` the calls of the standard library and of others, `modules` what a name
in a file means; `body` reads one function, `lint` those of a file and the functions that they call.
"""
