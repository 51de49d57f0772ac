"""The statements and functions of the store, a file for each topic, for every database.

One constant for each statement; values are parameters only. A constant that lists columns (`RUN`, `WAIT`, ...) has them
in the order of the fields of its struct in `rows`, so that a row becomes a struct by position. A function that writes
has a transaction as its first parameter, a function that reads the readers (`tx`); how changes are written that several
processes make at once is in `rules`.
"""
