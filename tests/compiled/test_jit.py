"""The kernel cache: keyed by every source that matters, quiet on the second run, usable where nothing is writeable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import semibandit
from semibandit.compiled import sources

PACKAGE = Path(semibandit.__file__).parent

RUN = """
import numpy as np, semibandit as sb
from semibandit.compiled import jit as _jit
m = sb.Uniform(500, 3)
PLAY
print(_jit.compiled_now(), _jit.cache_directory())
"""
PLAYS = {
    "small": "import semibandit.compiled.random as r; r.fill_uniforms(r.new_state(1), np.zeros(3))",
    "base": "m.max_weight_base(np.linspace(0, 1, 500))",
    "simulation": 'sb.simulate(sb.CUCB(m, engine="kinetic"), sb.Bernoulli(m, np.linspace(0, 1, 500)), 50)',
}


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_every_file_with_a_kernel_is_part_of_the_key():
    known = set(sources.kernel_modules())
    decorated = re.compile(r"^\s*@(njit|kernel|inline_kernel|intrinsic|generic)\b", re.M)
    holders = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if decorated.search(path.read_text())
    }
    assert len(holders) > 10
    assert holders <= known


def test_importing_compiles_nothing_and_help_needs_no_compiler():
    code = "import sys, semibandit; print('numba' in sys.modules, 'numpy' in sys.modules)"
    assert run(code).stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    "play", ["small", *(pytest.param(play, marks=pytest.mark.slow) for play in ("base", "simulation"))]
)
def test_the_second_run_compiles_nothing_and_the_first_says_so_once(tmp_path, play):
    code = RUN.replace("PLAY", PLAYS[play])
    first = run(code, SEMIBANDIT_CACHE_DIR=str(tmp_path), SEMIBANDIT_JIT="1", NUMBA_OPT="1")
    second = run(code, SEMIBANDIT_CACHE_DIR=str(tmp_path), SEMIBANDIT_JIT="1", NUMBA_OPT="1")
    assert int(first.stdout.split()[0]) > 0
    assert first.stderr.count("compiling kernels") == 1
    assert int(second.stdout.split()[0]) == 0
    assert "compiling" not in second.stderr
    assert str(tmp_path) in second.stdout


@pytest.mark.slow
def test_bounds_checks_have_a_cache_of_their_own(tmp_path):
    code = "from semibandit.compiled import jit; print(jit.cache_directory())"
    plain = run(code, SEMIBANDIT_CACHE_DIR=str(tmp_path), NUMBA_BOUNDSCHECK="0").stdout
    checked = run(code, SEMIBANDIT_CACHE_DIR=str(tmp_path), NUMBA_BOUNDSCHECK="1").stdout
    assert plain != checked


def test_an_unusable_cache_directory_is_passed_over(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    result = run(
        "from semibandit.compiled import jit; print(jit.cache_directory())",
        SEMIBANDIT_CACHE_DIR=str(blocker),
        XDG_CACHE_HOME=str(blocker),
    )
    assert "semibandit-" in result.stdout and str(blocker) not in result.stdout


OUTSIDE = """
import numpy as np
from semibandit.compiled import jit
from outside import twice
print(twice(np.array([1.0, 2.0])), jit.compiled_now())
"""


@pytest.mark.slow
def test_kernels_outside_the_package_are_kept_and_edits_in_what_they_import_are_noticed(tmp_path):
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("")
    helper = tmp_path / "helpers" / "factor.py"
    text = "from semibandit.compiled.jit import kernel\n\n\n@kernel\ndef times(x):\n    return FACTOR * x\n"
    helper.write_text(text.replace("FACTOR", "2.0"))
    (tmp_path / "outside.py").write_text(
        "from helpers.factor import times\nfrom semibandit.compiled.jit import kernel\n\n\n"
        "@kernel\ndef twice(x):\n    return times(x[0]) + times(x[1])\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {"SEMIBANDIT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    first, second = (run(OUTSIDE, **environment).stdout.split() for _ in range(2))
    assert first[0] == second[0] == "6.0"
    assert int(first[1]) > 0 and int(second[1]) == 0
    helper.write_text(text.replace("FACTOR", "3.0"))
    assert run(OUTSIDE, **environment).stdout.split()[0] == "9.0"


@pytest.mark.slow
def test_kernels_that_were_typed_in_are_compiled_anew(tmp_path):
    code = (
        "from semibandit.compiled import jit\n"
        "def times(x):\n    return FACTOR * x\n"
        "times = jit.kernel(times)\n"
        "print(times(2.0), repr(times.fingerprint))"
    )
    for factor, result in (("2.0", "4.0"), ("3.0", "6.0")):
        told = run(code.replace("FACTOR", factor), SEMIBANDIT_CACHE_DIR=str(tmp_path)).stdout.split()
        assert told == [result, "''"]
