"""The part of the sandbox that is Python: it is imported once, when the component is built, and its memory is the image
that each call starts from. Only `componentize-py` imports it; nothing of weft is here.

`run` takes a request and returns an answer: `O[result, stdout]`, or `E{message, memory, stdout}`. There is no WASI:
what would reach the host meets a stub that ends the call. This file is no wall: it replaces what programs use
by mistake (files, sockets, threads, `sleep`) by errors that say so, freezes the time, and seeds what is random.
"""

# All that programs may import: what is not imported here does not exist inside.
import _strptime
import _thread
import abc
import argparse
import array
import ast
import base64
import binascii
import bisect
import builtins
import calendar
import cmath
import codecs
import collections.abc
import colorsys
import contextlib
import contextvars
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import email.message
import email.parser
import email.policy
import email.utils
import encodings.ascii
import encodings.cp1252
import encodings.idna
import encodings.latin_1
import encodings.punycode
import encodings.utf_16
import encodings.utf_16_be
import encodings.utf_16_le
import encodings.utf_8_sig
import enum
import fnmatch
import fractions
import functools
import graphlib
import hashlib
import heapq
import hmac
import html.entities
import html.parser
import io
import ipaddress
import itertools
import json
import keyword
import linecache
import logging
import math
import mimetypes
import numbers
import operator
import os
import pathlib
import posixpath
import pprint
import quopri
import random
import re
import reprlib
import secrets
import shlex
import statistics
import string
import struct
import sys
import textwrap
import time
import timeit
import tokenize
import tomllib
import traceback
import types
import typing
import unicodedata
import urllib.parse
import uuid
import warnings
import weakref
import xml.etree.ElementTree
import zlib

import wit_world

# CPython looks for a file of this name to show the line of a SyntaxError: a name that is no path ends that before the
# stub that would end the call.
_FILE = "<code>\ud800"
_RESULT_KINDS = "a result is made of dict, list, tuple, str, int, float, bool, None, and dates"
_now = 0.0  # seconds since 1970, as all clocks see it
_draw = random.Random(0)  # for what asks the system for randomness


class Refused(PermissionError):
    """The program used a function or a module that the sandbox does not have."""


def _refuse(what, instead=""):
    def refused(*args, **more):
        raise Refused(f"{what} does not exist in the sandbox{instead}")

    return refused


class _Finder:
    """In place of the finders that would look into files."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        raise ModuleNotFoundError(f"the module {name!r} does not exist in the sandbox", name=name)


class _Console(io.TextIOBase):
    """stdout and stderr, as long as there is room."""

    def __init__(self):
        self.parts = []
        self.room = 0

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str")
        if self.room >= 0:
            if len(text) > self.room:
                self.parts.append(text[: self.room] + "\n[output cut]\n")
                self.room = -1
            else:
                self.parts.append(text)
                self.room -= len(text)
        return len(text)


class ctx:
    """The block, as its program sees it."""

    __slots__ = ()

    @staticmethod
    def log(*values):
        """Writes to the log of the run, as print does."""
        print(*values)


def _freeze_time():
    real = datetime.datetime

    class _Kind(type):
        def __instancecheck__(cls, value):
            return isinstance(value, real)

        def __subclasscheck__(cls, other):
            return issubclass(other, real)

    class datetime_(real, metaclass=_Kind):
        __slots__ = ()

        @classmethod
        def now(cls, tz=None):
            moment = cls.fromtimestamp(_now, datetime.UTC)
            return moment.replace(tzinfo=None) if tz is None else moment.astimezone(tz)

        @classmethod
        def utcnow(cls):
            return cls.now()

        @classmethod
        def today(cls):
            return cls.now()

        @classmethod
        def fromtimestamp(cls, stamp, tz=None):
            moment = cls(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=stamp)
            return moment.replace(tzinfo=None) if tz is None else moment.astimezone(tz)

    class date_(
        datetime.date, metaclass=type("_DateKind", (type,), {"__instancecheck__": lambda c, v: isinstance(v, date)})
    ):
        __slots__ = ()

        @classmethod
        def today(cls):
            return datetime_.now().date()

    date = datetime.date
    for made, name in ((datetime_, "datetime"), (date_, "date")):
        made.__name__ = made.__qualname__ = name
        made.__module__ = "datetime"
        setattr(datetime, name, made)
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, lambda: _now)
        setattr(time, name + "_ns", lambda: int(_now * 1000) * 1_000_000)
    utc, parts = time.gmtime, time.strftime
    time.gmtime = time.localtime = lambda seconds=None: utc(_now if seconds is None else seconds)
    time.strftime = lambda form, moment=None: parts(form, time.gmtime() if moment is None else moment)
    time.ctime = lambda seconds=None: time.asctime(time.gmtime(seconds))
    time.asctime = (lambda real: lambda moment=None: real(time.gmtime() if moment is None else moment))(time.asctime)
    time.mktime = calendar.timegm
    time.tzname, time.timezone, time.altzone, time.daylight = ("UTC", "UTC"), 0, 0, 0
    time.tzset = lambda: None
    time.sleep = _refuse("time.sleep", "; use a Wait block")
    timeit.default_timer = time.perf_counter


def _seed_randomness():
    system = lambda count: _draw.randbytes(count)
    os.urandom = random._urandom = system
    os.getrandom = lambda count, flags=0: system(count)

    class Random(random.Random):
        """Without a seed it asks the system for one, in C."""

        def __init__(self, x=None):
            super().__init__(_draw.getrandbits(128) if x is None else x)

        def seed(self, a=None, version=2):
            super().seed(_draw.getrandbits(128) if a is None else a, version)

    random.Random = Random
    random.seed = lambda a=None, version=2: random._inst.seed(_draw.getrandbits(128) if a is None else a, version)
    uuid.getnode = lambda: 0x020000000000
    uuid._generate_time_safe = uuid._UuidCreate = None


def _refuse_the_rest():
    kept = {"fspath", "fsencode", "fsdecode", "urandom", "getrandom", "strerror", "get_exec_path", "PathLike"}
    for name, value in list(vars(os).items()):
        if callable(value) and not isinstance(value, type) and name not in kept and not name.startswith("__"):
            setattr(os, name, _refuse(f"os.{name}"))
    os.environ = {}
    os.getcwd = lambda: "/"
    os.getpid = lambda: 1
    os.cpu_count = lambda: 1
    for name in ("open", "open_code", "FileIO"):
        setattr(io, name, _refuse("a file"))
    builtins.open = io.open
    builtins.input = _refuse("input()", "; refer to values of other blocks as <block.field>")
    builtins.breakpoint = _refuse("breakpoint()")
    _thread.start_new_thread = _thread.start_joinable_thread = _refuse("a thread")
    for name in ("exit", "quit", "help", "copyright", "credits", "license"):
        vars(builtins).pop(name, None)
    for name in ("socket", "subprocess", "multiprocessing", "ctypes", "ssl", "select", "signal", "threading"):
        if name in sys.modules and name != "threading":
            del sys.modules[name]
    linecache.getlines = linecache.updatecache = lambda name, module_globals=None: []
    linecache.lazycache = lambda name, module_globals: False
    linecache.checkcache = lambda name=None: None
    sys.meta_path[:] = [_Finder]
    sys.path_hooks.clear()
    sys.path.clear()
    sys.path_importer_cache.clear()


def _json(value):
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    raise TypeError(f"the result has a {type(value).__name__}, which is not JSON; {_RESULT_KINDS}")


_dumps, _loads = json.JSONEncoder(allow_nan=False, default=_json, separators=(",", ":")).encode, json.loads
_plain = json.JSONEncoder(separators=(",", ":")).encode
_parse, _extract = ast.parse, traceback.walk_tb


def _message(error):
    """`ValueError: no (line 3)`: the deepest line of the program itself."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        text = "it cannot be shown"
    if isinstance(error, SyntaxError):
        text, line = str(error.msg), error.lineno if error.filename == _FILE else None
    else:
        line = None
        for frame, number in _extract(error.__traceback__):
            if frame.f_code.co_filename == _FILE:
                line = number
    where = f" (line {line})" if line else ""
    return (f"{name}: {text}" if text else name) + where


def _compiled(source):
    """The function `main` whose body is the program. Wrapping its tree leaves texts over several lines as they are.
    Raises SyntaxError."""
    tree = _parse(source, _FILE)
    function = ast.FunctionDef(
        "main", ast.arguments([], [], None, [], [], None, []), tree.body or [ast.Pass()], [], None, None, []
    )
    module = ast.fix_missing_locations(ast.Module([function], []))
    return compile(module, _FILE, "exec")


def _failed(error, stdout, memory=False):
    return "E" + _plain({"message": _message(error), "memory": memory, "stdout": stdout})


class WitWorld(wit_world.WitWorld):
    def run(self, request: str) -> str:
        global _now
        asked = _loads(request)
        if asked["kind"] == "check":
            try:
                _compiled(asked["source"])
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                return "O" + _plain(_message(error))
            return "Onull"
        console = _Console()
        console.room = asked["console"]
        sys.stdout = sys.stderr = console
        _now = asked["now"] / 1000
        seed = sum(word << 32 * place for place, word in enumerate(asked["seed"]))
        random.seed(seed)
        _draw.seed(seed + 1)
        call = asked["calls"][0]
        names = {"__builtins__": builtins, "__name__": "__main__", "__v": call["v"], "__t": call["t"], "ctx": ctx()}
        try:
            exec(_compiled(call["s"]), names)
            answer = _dumps(names["main"]())
        except MemoryError as error:
            return _failed(error, "", memory=True)
        except BaseException as error:
            return _failed(error, "".join(console.parts))
        return f"O[{answer},{_plain(''.join(console.parts))}]"


_freeze_time()
_seed_randomness()
_refuse_the_rest()
