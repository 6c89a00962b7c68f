"""Checks of output files before a long run, so that nothing is lost at its end."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from semibandit.errors import MissingExtraError, ParameterError
from semibandit.text import needs


def need(package: str, purpose: str) -> None:
    """Raise unless an optional package is installed."""
    if not have(package):
        raise MissingExtraError(needs(purpose, package))


def have(package: str) -> bool:
    """Whether an optional package is installed; it is not imported."""
    return find_spec(package) is not None


def writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> Path:
    """`path`, if a file can be written there and its suffix is one of `suffixes` (any, if there are none)."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ParameterError(f"{option} {path}: the name should end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ParameterError(f"{option} {path}: that is a directory")
    parent = path.resolve().parent
    if not parent.is_dir():
        what = f"{path.parent} is a file" if parent.exists() else f"there is no directory {path.parent}"
        raise ParameterError(f"{option} {path}: {what}; make it first")
    return path


def output_folder(path: Path, option: str) -> Path:
    """`path` as a folder for output: made if it is not there."""
    if path.exists() and not path.is_dir():
        raise ParameterError(f"{option} {path}: that is a file; name a folder")
    path.mkdir(parents=True, exist_ok=True)
    return path


def picture(path: Path, option: str) -> Path:
    """`path` for a picture, with matplotlib at hand."""
    need("matplotlib", option)
    return writable(path, option, (".png", ".svg", ".pdf"))
