"""Reading a table of an experiment file key by key, with errors that name the file, the line and the key."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semibandit.errors import ExperimentError
from semibandit.experiments.toml_lines import KeyPath, line_numbers
from semibandit.text import nearest, unknown

_MISSING: Any = object()


@dataclass(frozen=True)
class Source:
    """A file as text, its values, and the line of every key."""

    name: str
    text: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    @classmethod
    def read(cls, path: Path) -> Source:
        """The TOML file at `path`."""
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ExperimentError(f"{path}: not UTF-8 text (byte {error.start})") from None
        except OSError as error:
            raise ExperimentError(f"{path}: cannot be read ({error.strerror or error})") from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str) -> Source:
        """TOML `text` that came from `name`."""
        text = text.replace("\r\n", "\n")
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message, _, where = str(error).partition(" (at ")
            line = where.split(",")[0].removeprefix("line ").rstrip(")")
            place = f"line {line}" if line.isdigit() else f"line {text.count(chr(10)) + 1}, the end"
            raise ExperimentError(f"{name}, {place}: not valid TOML: {message}") from None
        return cls(name, text, values, line_numbers(text))

    def line(self, path: KeyPath) -> int:
        """Line of the key or table at `path`, or of the table around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: KeyPath, message: str) -> ExperimentError:
        """An error about the key or table at `path`."""
        key = ".".join(part if isinstance(part, str) else f"{part + 1}" for part in path)
        return ExperimentError(f"{self.name}, line {self.line(path)}, {key}: {message}")


class Table:
    """One table: each key is asked for with what it must be; `done` refuses keys that nobody asked for."""

    def __init__(self, source: Source, path: KeyPath, values: Any) -> None:
        self.source, self.path = source, path
        if not isinstance(values, dict):
            raise source.error(path, f"must be a table ([{path[0]}]), got {values!r}")
        self.values = values
        self._asked: dict[str, None] = {}

    def has(self, key: str) -> bool:
        """Whether `key` is given; from now on it counts as known."""
        self._asked[key] = None
        return key in self.values

    def error(self, key: str | None, message: str) -> ExperimentError:
        """An error about `key`, or about the whole table."""
        return self.source.error(self.path if key is None else (*self.path, key), message)

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """The value of `key`, whatever it is."""
        if self.has(key):
            return self.values[key]
        if default is _MISSING:
            strange = [other for other in self.values if other not in self._asked]
            near = nearest(key, strange)
            if near is not None:
                raise self.error(near, f"not a known key here, did you mean {key!r}?")
            raise self.error(None, f"the key {key} is missing")
        return default

    def integer(self, key: str, default: Any = _MISSING, least: int = 0) -> int:
        """A whole number of at least `least`."""
        value = self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(key, f"must be a whole number of at least {least}, got {_shown(value)}")
        if value >= 2**63:
            raise self.error(key, f"must be below 2^63, got {value}")
        return value

    def number(self, key: str, default: Any = _MISSING) -> float:
        """A finite number."""
        value = self.get(key, default)
        if not is_number(value):
            raise self.error(key, f"must be a number, got {_shown(value)}")
        return float(value)

    def text(self, key: str, default: Any = _MISSING) -> str:
        """A line of text that is not empty."""
        value = self.get(key, default)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.error(key, f"must be a line of text, got {_shown(value)}")
        return value

    def choice(self, key: str, choices: Sequence[str], default: Any = _MISSING) -> str:
        """One of `choices`."""
        value = self.get(key, default)
        if value not in choices:
            raise self.error(key, unknown(f"{_shown(value)} is not known", value, choices))
        return str(value)

    def range(self, key: str, default: tuple[float, float]) -> list[float]:
        """Two numbers, the first below the second."""
        value = self.get(key, list(default))
        if (
            not isinstance(value, list)
            or len(value) != 2
            or not all(map(is_number, value))
            or value[0] >= value[1]
        ):
            raise self.error(key, f"must be two numbers [low, high] with low < high, got {_shown(value)}")
        return [float(value[0]), float(value[1])]

    def done(self) -> None:
        """Refuse what is left over, with the nearest known key."""
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, unknown("not a known key here", key, self._asked))


def is_number(value: Any) -> bool:
    """Whether a TOML value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
