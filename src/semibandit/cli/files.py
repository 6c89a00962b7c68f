"""Checks of output files before a long run, so that nothing is lost at its end."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from semibandit.errors import MissingExtraError, ParameterError

_EXTRAS = {"matplotlib": "plot", "polars": "results"}


def need(package: str, purpose: str) -> None:
    """Raise unless an optional package is installed."""
    if find_spec(package) is None:
        raise MissingExtraError(
            f"{purpose} needs {package}: install it with `pip install semibandit[{_EXTRAS[package]}]`"
        )


def writable(path: Path, option: str, suffixes: tuple[str, ...]) -> Path:
    """`path`, if a file can be written there and its suffix is one of `suffixes`."""
    if path.suffix.lower() not in suffixes:
        raise ParameterError(f"{option} {path}: the name should end in {' or '.join(suffixes)}")
    if not path.resolve().parent.is_dir():
        raise ParameterError(f"{option} {path}: there is no directory {path.parent}; make it first")
    if path.is_dir():
        raise ParameterError(f"{option} {path}: that is a directory")
    return path


def picture(path: Path, option: str) -> Path:
    """`path` for a picture, with matplotlib at hand."""
    need("matplotlib", option)
    return writable(path, option, (".png", ".svg", ".pdf"))
