"""What compiled code depends on: every module that a kernel takes a name from is part of its fingerprint."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import semibandit
from semibandit.compiled import sources

PACKAGE = Path(semibandit.__file__).parent
DECORATORS = {"kernel", "inline_kernel", "njit", "intrinsic", "generic"}


def path_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def names_in_kernels(tree: ast.Module) -> set[str]:
    """All names that functions with one of our decorators mention."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = {
                getattr(part, "id", getattr(getattr(part, "func", None), "id", ""))
                for part in node.decorator_list
            }
            if marks & DECORATORS:
                found |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found


@pytest.mark.parametrize("module", [m for m in sources.kernel_modules() if m != "semibandit.arms"])
def test_kernels_use_names_of_modules_with_kernels_only(module):
    tree = ast.parse(path_of(module).read_text())
    used = names_in_kernels(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("semibandit"):
            for alias in node.names:
                if (alias.asname or alias.name) in used:
                    assert sources.holds_kernels(node.module), (
                        f"{module}: {alias.name} comes from {node.module}"
                    )


def test_a_fingerprint_covers_what_a_module_imports():
    kinetic = "semibandit.engines.kinetic.tournament"
    assert "semibandit.compiled.lanes" in sources._imports(kinetic)
    one = sources.fingerprint(frozenset({kinetic}))
    assert one == sources.fingerprint(frozenset({kinetic}))
    assert one != sources.fingerprint(frozenset({"semibandit.compiled.sorting"}))


def test_an_edit_far_below_changes_the_fingerprint_and_an_edit_elsewhere_does_not(tmp_path):
    copy = tmp_path / "semibandit"
    subprocess.run(["cp", "-r", str(PACKAGE), str(copy)], check=True)
    code = (
        "from semibandit.compiled import sources as s;"
        "print(s.fingerprint(frozenset({'semibandit.engines.kinetic.tournament'})))"
    )

    def fingerprint() -> str:
        run = [sys.executable, "-c", code]
        return subprocess.run(
            run, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        ).stdout

    before = fingerprint()
    assert len(before.strip()) == 16
    with (copy / "policies" / "index" / "cucb.py").open("a") as file:
        file.write("\n# a word\n")
    assert fingerprint() == before
    with (copy / "compiled" / "lanes.py").open("a") as file:
        file.write("\n# a word\n")
    assert fingerprint() != before


def test_a_fingerprint_does_not_depend_on_what_else_was_imported():
    """Random gives the states of engines one more kernel when it is made; nothing that does not call it may notice."""
    code = """
import sys
import semibandit as sb
from semibandit.compiled import jit
from semibandit.policies.catalogue import POLICIES

matroid = sb.Graphic([(0, 1), (1, 2), (2, 0)])
if sys.argv[1:]:
    list(POLICIES), sb.Random(matroid)
sb.CUCB(matroid)
mine = [name for name in sorted(jit.KERNELS) if name.startswith("engines.kernels.select_entry")]
print([jit.KERNELS[name].fingerprint for name in mine])
"""
    first, second = (
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["all"])
    )
    assert len(first) > 20
    assert set(ast.literal_eval(first)) <= set(ast.literal_eval(second))
