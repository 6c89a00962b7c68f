"""Where the benchmarks stand: beside the package, which knows nothing of them, in the sources but not in the wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "semibandit"
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)


def imports(folder: Path) -> set[str]:
    return {name for path in folder.rglob("*.py") for name in _IMPORT.findall(path.read_text())}


def test_the_package_imports_no_benchmark() -> None:
    assert not [name for name in imports(PACKAGE) if name.split(".")[0] == "benchmarks"]


def test_reports_and_experiments_do_not_need_the_bench() -> None:
    for room in ("report", "experiments", "simulation", "policies"):
        found = imports(PACKAGE / room)
        assert "semibandit.errors" in found
        assert not [name for name in found if name.startswith(("semibandit.bench", "semibandit.cli"))], room


def test_the_wheel_has_the_package_alone_and_the_sources_have_everything() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["packages"] == ["src/semibandit"]
    assert "benchmarks" in targets["sdist"]["include"]
