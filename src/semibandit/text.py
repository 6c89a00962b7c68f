"""Words and tables that fit a terminal: numbers as people read them, names that were meant, what to install."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

WIDTH = 100


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns padded to their widest entry; the first `left` columns flush left, the others flush right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    out = []
    for n, line in enumerate(lines):
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
        if n == 0:
            out.append("  ".join("-" * width for width in widths))
    return "\n".join(out)


def number(value: float | None, digits: int = 3) -> str:
    """About `digits` significant digits, thousands apart, never in exponent notation: 0.21, 7.9, 3,120."""
    if value is None or value != value:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    decimals = digits - 1
    while size < 1 and decimals < 9:
        size *= 10
        decimals += 1
    while size >= 10 and decimals > 0:
        size /= 10
        decimals -= 1
    return f"{value:.{decimals}f}"


def times(value: float | None) -> str:
    """A ratio: ``523 x``."""
    return "-" if value is None else f"{number(value)} x"


_UNITS = (("ms", 1e-3, 0.1), ("s", 1.0, 60.0), ("min", 60.0, 3600.0), ("h", 3600.0, 48 * 3600.0))


def duration(seconds: float) -> str:
    """Seconds in the unit a person would take: ``20 ms``, ``8 s``, ``12 min``, ``3.4 h``."""
    unit, size = next(
        ((unit, size) for unit, size, limit in _UNITS if seconds < 0.999 * limit), ("days", 86400.0)
    )
    text = number(seconds / size, 2)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known name that `word` is most likely meant to be, None if none is near. O(names x length^2).

    Capitals, ``-`` and ``_`` do not count.

    >>> nearest("FasterCUCB", ["cucb", "faster-cucb"]), nearest("moon", ["cucb"])
    ('faster-cucb', None)
    """
    from difflib import get_close_matches

    plain: dict[str, str] = {}
    for name in known:
        plain.setdefault(_letters(name), name)
    near = get_close_matches(_letters(str(word)), plain, n=1, cutoff=0.6)
    return plain[near[0]] if near else None


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def unknown(told: str, word: object, known: Iterable[str]) -> str:
    """How a name is refused: what is wrong (`told`), the nearest known name, and all of them.

    >>> unknown("policy = 'ucbc' is not known", "ucbc", ["cts", "cucb"])
    "policy = 'ucbc' is not known, did you mean 'cucb'? It is one of cts, cucb"
    >>> unknown("policy = 'moon' is not known", "moon", ["cts", "cucb"])
    "policy = 'moon' is not known: one of cts, cucb"
    """
    names = [str(name) for name in known]
    near = nearest(word, names)
    if near is None:
        return f"{told}: one of {', '.join(names)}"
    return f"{told}, did you mean {near!r}? It is one of {', '.join(names)}"


#: Optional packages and the extra that brings each.
EXTRAS = {
    "matplotlib": "plot",
    "polars": "results",
    "pandas": "pandas",
    "topohub": "data",
    "vega_datasets": "data",
    "bokeh_sampledata": "data",
    "uvicorn": "serve",
    "msgspec": "serve",
    "httpx": "serve",
    "psycopg": "postgres",
    "ray": "ray",
}


def pip_install(extra: str) -> str:
    """The command that brings an extra, quoted so that every shell takes it.

    >>> pip_install("plot")
    "pip install 'semibandit[plot]'"
    """
    return f"pip install 'semibandit[{extra}]'"


def needs(purpose: str, package: str) -> str:
    """What to say when an optional package is missing.

    >>> needs("plot", "matplotlib")
    "plot needs matplotlib: install it with `pip install 'semibandit[plot]'`"
    """
    return f"{purpose} needs {package}: install it with `{pip_install(EXTRAS[package])}`"
