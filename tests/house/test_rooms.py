"""The picture of the rooms in CONTRIBUTING.md is true: imports go one way."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import semibandit

PACKAGE = Path(semibandit.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

#: Every room may import from those before it, and from itself.
ROOMS = [
    "errors",
    "arms",
    "text",
    "machine",
    "locking",
    "compiled",
    "checks",
    "presence",
    "frames",
    "matroids",
    "engines",
    "paper",
    "environments",
    "policies",
    "catalog",
    "fleet",
    "distributed",
    "simulation",
    "data",
    "experiments",
    "report",
    "bench",
    "testing",
    "serve",
    "client",
    "cli",
    "__main__",
]

#: Plays a little of everything when the package is built, so it looks at all rooms; nobody imports it at run time.
EVERYWHERE = {"semibandit.compiled.training"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, also inside functions, but not for type checkers alone."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("semibandit"):
            if node.module == "semibandit":
                found.update(f"semibandit.{alias.name}" for alias in node.names)
            else:
                found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.startswith("semibandit."))
    return found


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else None


def test_every_file_is_in_a_room():
    names = {room_of(module_name(path)) for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"}
    assert names == set(ROOMS)


def test_imports_go_one_way():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = module_name(path)
        if module == "semibandit" or module in EVERYWHERE:
            continue
        here = ROOMS.index(room_of(module))
        for other in sorted(imports(path)):
            room = room_of(other)
            if room is not None and ROOMS.index(room) > here:
                wrong.append(f"{module} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_contributing_shows_the_rooms_in_this_order():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    shown = re.search(r"## The house\n.*?```text\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    rooms = re.findall(r"^(\w+?)(?:\.py|/)?\s{2,}", shown.group(1), re.MULTILINE)
    assert rooms == ROOMS


def test_the_files_that_tests_begin_with_exist() -> None:
    named = re.findall(r'^    "(\w+/\w+\.py)",$', (ROOT / "tests" / "conftest.py").read_text(), re.M)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
