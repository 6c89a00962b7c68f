"""Plain text tables that fit a terminal, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

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
