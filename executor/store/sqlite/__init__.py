"""The store on one SQLite file.

`store` has all methods; `writer` commits, `readers` read, `connection` is the only way to a commit, `migrate` brings a
file to the newest schema. Each other file is a topic with its SQL, one constant for each statement. Values are
parameters only. A constant that lists columns (`RUN`, `WAIT`, ...) has them in the order of the fields of its struct in
`rows`, so that a row becomes a struct by position.
"""
