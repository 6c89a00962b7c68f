"""A policy, an engine and a matroid from outside: one file each, and every part of the package knows them."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.engines import ENGINES
from semibandit.matroids import codec
from semibandit.policies import catalogue
from semibandit.testing import check_engine, check_matroid, check_policy

POLICY = """
import numpy as np
from semibandit.engines import make_engine
from semibandit.policies.catalogue import register
from semibandit.policies.index.cucb import CUCB


@register(cost="that of cucb", guarantee="none", reference="a test")
class HalfCUCB(CUCB):
    name = "half-cucb"

    def __init__(self, matroid, *, reward_range=(0.0, 1.0), seed=0):
        super().__init__(matroid, reward_range=reward_range, exploration=0.75, seed=seed)

    def _arguments(self):
        return {"reward_range": self.reward_range, "seed": self.seed}
"""

ENGINE = """
from semibandit.engines.registry import register_engine
from semibandit.engines.resolve.oracle import OracleEngine


@register_engine("again", cost="O(K log K) a round")
class AgainEngine(OracleEngine):
    name = "again"
"""

MATROID = '''
import numpy as np
from semibandit.matroids import Matroid, codec


class Pairs(Matroid):
    """At most one arm of each two neighbours 2i and 2i + 1, at most `most` in all."""

    def __init__(self, n_arms, most):
        super().__init__(n_arms)
        self.most = most

    def _is_independent(self, arms):
        return len(arms) <= self.most and len(set((arms // 2).tolist())) == len(arms)


codec.register(
    Pairs,
    to_parts=lambda matroid: {"n_arms": matroid.n_arms, "most": matroid.most},
    from_parts=Pairs,
    from_toml=lambda n_arms, most: Pairs(n_arms, most),
    random=lambda arms, rank, seed: Pairs(arms, rank),
)
'''


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The three files, imported; all tables as they were when the test is over."""
    files = {"half_cucb": POLICY, "again_engine": ENGINE, "pairs": MATROID}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for (
        name
    ) in codec.names():  # a module that is imported only now would register its class, and lose it again
        codec.row(name)
    engines, tables = dict(ENGINES), (catalogue._entries, codec._rows)
    _ = list(catalogue.POLICIES)
    before = [dict(table) for table in tables]
    yield {name: importlib.import_module(name) for name in files}
    ENGINES.clear()
    ENGINES.update(engines)
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)
    vars(sb).pop("HalfCUCB", None)
    for name in files:
        sys.modules.pop(name, None)


def test_one_file_each_is_enough(outside, tmp_path):
    matroid = outside["pairs"].Pairs(10, 3)
    check_matroid(matroid)
    check_engine(outside["again_engine"].AgainEngine, matroid)
    check_policy(lambda: sb.HalfCUCB(matroid))

    policy = sb.HalfCUCB(sb.Uniform(n_arms=20, rank=3))
    env = sb.Bernoulli(policy.matroid, np.linspace(0.1, 0.9, 20), seed=1)
    assert sb.simulate(policy, env, rounds=50).path == "compiled"
    policy = sb.HalfCUCB(matroid)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 10), seed=1)
    sb.simulate(policy, env, rounds=50)
    policy.save(tmp_path / "saved")
    loaded = sb.load(tmp_path / "saved")
    assert type(loaded.matroid) is type(matroid) and type(loaded) is sb.HalfCUCB
    assert loaded.select().tolist() == policy.select().tolist()

    arguments = ["run", "--matroid", "pairs", "--arms", "12", "--rank", "3", "--rounds", "40"]
    arguments += ["--policy", "half-cucb", "--policy", "cucb:engine=again"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "half-cucb" in done.output
    assert len(list(tmp_path.glob("*.py"))) == 3
