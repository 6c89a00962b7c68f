"""On which line of a TOML file each table and key stands, for error messages; values are read by `tomllib`."""

from __future__ import annotations

import re
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]

_HEADER = re.compile(r"[ \t]*(\[\[?)([^\]\n]+)\]")
_WORD = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = re.compile(rf"[ \t]*({_WORD}(?:[ \t]*\.[ \t]*{_WORD})*)[ \t]*=")
_PART = re.compile(_WORD)
_TOKEN = re.compile(r'"""|\'\'\'|"|\'|[\[\]{}#\n]')


def line_numbers(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table and key of a valid TOML `text`. O(length).

    A key of the second ``[[policy]]`` has the path ``("policy", 1, key)``; keys inside an inline table stand where that
    table stands.

    >>> line_numbers('[[policy]]\\nname = "a"\\n[[policy]]\\nname = "b"')[("policy", 1, "name")]
    4
    """
    lines: dict[KeyPath, int] = {}
    tables: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for start, end in _statements(text):
        line = text.count("\n", 0, start) + 1
        header = _HEADER.match(text, start, end)
        key = _KEY.match(text, start, end)
        if header is not None:
            table = _resolve(_parts(header.group(2)), tables)
            if header.group(1) == "[[":
                tables[table] = tables.get(table, -1) + 1
                table = (*table, tables[table])
            for depth in range(1, len(table) + 1):
                lines.setdefault(table[:depth], line)
        elif key is not None:
            path: KeyPath = table
            for part in _parts(key.group(1)):
                path = (*path, part)
                lines.setdefault(path, line)
    return lines


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]


def _resolve(parts: list[str], tables: dict[KeyPath, int]) -> KeyPath:
    """The path of a header: a name of an array of tables before the last part means its latest table."""
    path: KeyPath = ()
    for i, part in enumerate(parts):
        path = (*path, part)
        if i < len(parts) - 1 and path in tables:
            path = (*path, tables[path])
    return path


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each header or ``key = value``; a value may run over several lines."""
    start = at = depth = 0
    while at < len(text):
        found = _TOKEN.search(text, at)
        if found is None:
            break
        token, at = found.group(), found.end()
        if token == "#":
            newline = text.find("\n", at)
            at = len(text) if newline < 0 else newline
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        elif token == "\n":
            if depth == 0:
                yield start, at
                start = at
        else:
            at = _string_end(text, at, token)
    yield start, len(text)


def _string_end(text: str, at: int, quote: str) -> int:
    """Where the string that was opened by `quote` just before `at` ends."""
    while at < len(text):
        if text[at] == "\\" and quote[0] == '"':
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return at
