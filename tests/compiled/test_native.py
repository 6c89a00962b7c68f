"""Kernels compiled ahead of time: taken where they fit, refused where the source is another one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from semibandit.compiled import native, sources
from semibandit.engines.kernels import check_feedback

ahead = pytest.mark.skipif(
    native.module() is None or native.module().sources != sources.all_sources(),
    reason="no kernels ahead of time of these sources: `make kernels` makes them",
)

FIRST = """
import sys
import numpy as np
import semibandit as sb
from semibandit.compiled import jit
from semibandit.compiled.training import _matroids
from semibandit.policies.catalogue import POLICIES, build_policy

wrong = []
for kind, matroid in _matroids().items():
    for name in POLICIES:
        context = {"horizon": 1000, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
        policy = build_policy(name, {}, matroid, context=context)
        before = jit.compiled_now(), "numba" in sys.modules
        arms = policy.select()
        policy.update(arms, np.full(len(arms), 0.5))
        policy.select()
        if (jit.compiled_now(), "numba" in sys.modules) != before:
            wrong.append(f"{name} on {kind}")
print(*wrong, sep="\\n")
"""

DECIDE = """
import hashlib, sys
import numpy as np
import semibandit as sb
from semibandit.compiled.training import _matroids

matroids = _matroids()
for kind in sys.argv[1:]:
    matroid = matroids[kind]
    digest = hashlib.sha256()
    for policy in (sb.CUCB(matroid, clock="auto"), sb.CTS(matroid, seed=3)):
        env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, matroid.n_arms), seed=2)
        result = sb.simulate(policy, env, rounds=3000, record_arms=True, progress=False)
        digest.update(result.arms.tobytes())
        env = sb.Gaussian(matroid, np.linspace(0.1, 0.9, matroid.n_arms), 0.1, seed=2)
        for _ in range(500):
            arms = policy.select()
            digest.update(arms.tobytes())
            policy.update(arms, env.draw(arms))
    print(kind, digest.hexdigest())
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "SEMIBANDIT_JIT": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@ahead
def test_no_first_decision_needs_the_compiler():
    assert run(FIRST) == ""


@ahead
@pytest.mark.slow  # the fast tests compare kernels ahead of time with oracles, and test-jit what the compiler makes
@pytest.mark.parametrize(
    "kinds", [("uniform",), ("partition", "laminar", "graphic", "transversal")], ids="-".join
)
def test_decisions_are_those_of_the_compiler(kinds):
    assert run(DECIDE, *kinds) == run(DECIDE, *kinds, SEMIBANDIT_JIT="1")


@ahead
def test_the_compiler_can_be_forced():
    code = "from semibandit.compiled import native; print(native.module() is None)"
    assert run(code) == "False"
    assert run(code, SEMIBANDIT_JIT="1") == "True"
    assert run(code, NUMBA_BOUNDSCHECK="1") == "True"


@ahead
def test_code_of_another_source_is_refused():
    module = native.module()
    name, fingerprint, _ = module.entries()[0]
    assert module.bind(name, fingerprint, print) is not None
    assert module.bind(name, "0" * 16, print) is None
    assert module.bind("no.such.kernel", fingerprint, print) is None


@ahead
class TestArguments:
    """`check_feedback(n_arms, arms, rewards, low, high)`, bound with a witness or nothing in place of the compiler."""

    arms, rewards = np.array([0, 1, 2]), np.array([0.0, 0.5, 1.0])

    def test_fitting_ones_run_ahead(self):
        bound = native.module().bind(check_feedback.name, check_feedback.fingerprint, None)
        assert bound(3, self.arms, self.rewards, 0.0, 1.0) == 0
        assert bound(2, self.arms, self.rewards, 0.0, 1.0) == 1 + 4 * 2
        assert bound(3, self.arms, self.rewards, 0.0, 0.75) == 2 + 4 * 2
        assert bound(np.int64(3), self.arms, self.rewards, np.float64(0.0), 1) == 0
        assert bound(3, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0, 1.0) == 0

    @pytest.mark.parametrize(
        "change",
        [
            {1: np.array([0, 1, 2], dtype=np.int32)},
            {1: np.arange(6)[::2]},
            {2: np.array([0.0, 0.5, 1.0], dtype=np.float32)},
            {2: np.zeros((3, 1))},
            {1: [0, 1, 2]},
            {0: 3.0},
            {3: "low"},
            {3: None},
        ],
        ids=str,
    )
    def test_others_go_to_the_compiler(self, change):
        asked = []
        bound = native.module().bind(
            check_feedback.name, check_feedback.fingerprint, lambda *args: asked.append(args)
        )
        args = [3, self.arms, self.rewards, 0.0, 1.0]
        for i, value in change.items():
            args[i] = value
        assert bound(*args) is None
        assert len(asked) == 1 and all(a is b for a, b in zip(asked[0], args, strict=True))

    @pytest.mark.parametrize("count", [0, 1, 4, 6])
    def test_so_do_too_few_and_too_many(self, count):
        asked = []
        bound = native.module().bind(
            check_feedback.name, check_feedback.fingerprint, lambda *args: asked.append(args)
        )
        bound(*([3, self.arms, self.rewards, 0.0, 1.0, 9][:count]))
        assert len(asked[0]) == count

    def test_arrays_of_other_dtype_objects_and_subclasses_fit(self):
        bound = native.module().bind(check_feedback.name, check_feedback.fingerprint, None)

        class Mine(np.ndarray):
            pass

        rewards = self.rewards.astype(np.dtype("<f8", metadata={"a": 1}))
        assert bound(3, self.arms.view(Mine), rewards, 0.0, 1.0) == 0

    def test_an_error_of_the_compiler_reaches_the_caller(self):
        def compiler(*args):
            raise ValueError("no")

        bound = native.module().bind(check_feedback.name, check_feedback.fingerprint, compiler)
        with pytest.raises(ValueError, match="no"):
            bound(1)


@ahead
def test_what_kernels_take_as_it_is():
    """The extension's answer is that of numpy, whatever is handed over."""
    arms, rewards = np.arange(3), np.zeros(3)
    frozen = rewards.copy()
    frozen.flags.writeable = False
    both = [
        (arms, rewards),
        (arms[:0], rewards[:0]),
        (arms, rewards[:2]),
        (arms, frozen),
        (arms[::-1], rewards),
        (np.arange(6)[::2], rewards),
        (arms.astype(np.int32), rewards),
        (arms.astype(np.uint64), rewards),
        (arms, rewards.astype(np.float32)),
        (arms, rewards.astype(">f8")),
        (arms.reshape(1, 3), rewards.reshape(1, 3)),
        (arms.tolist(), rewards),
        (arms, None),
        (np.matrix(arms), rewards),
        (np.frombuffer(b"\0" * 25, dtype=np.uint8)[1:].view(np.int64), rewards),
    ]
    told = [native.module().ready(*pair) for pair in both]
    assert told == [native._ready(*pair) for pair in both]
    assert told == [True, True] + [False] * (len(both) - 2)
