"""Bases of the Structs in compiled modules: mypyc ignores keywords of a class, and a Struct has those of its base."""

from msgspec import Struct


class Row(Struct, array_like=True):
    """Is stored as a list of its fields."""


class Untracked(Struct, gc=False):
    """Is nothing for the collector: no circle of objects can go through it."""
