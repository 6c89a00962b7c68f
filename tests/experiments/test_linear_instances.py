"""Experiment files with features: worlds by name, and policies that are told the features of the world."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from semibandit.experiments import load_experiment, run_experiment
from semibandit.experiments.cells import player
from semibandit.experiments.instance_table import build_located

FILE = """
[experiment]
name = "features"
rounds = 60
repeats = 1

[[policy]]
name = "comb-lin-ts"

[[policy]]
name = "comb-lin-ucb"
width = 0.5

[[instance]]
matroid = "uniform"
arms = 4
rank = 2
environment = "linear"
features = [[0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.2, 0.2]]
theta = [0.3, 0.6]

[[instance]]
matroid = "uniform"
arms = 4
rank = 2
environment = "contexts"
rows = [[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]]
theta = [0.3, 0.6]
width = 0.1
objective = "min"
"""


def test_policies_are_told_the_features_of_the_world(tmp_path: Path) -> None:
    path = tmp_path / "features.toml"
    path.write_text(FILE, encoding="utf-8")
    experiment = load_experiment(path)
    fixed, moving = (build_located(spec) for spec in experiment.instances)
    np.testing.assert_allclose(fixed.means, [0.57, 0.45, 0.33, 0.18])
    assert moving.objective == "min"
    made = [player(fixed, policy.content, 60) for policy in experiment.policies]
    assert [policy.features.tolist() for policy in made] == [fixed.features.tolist()] * 2
    assert made[1].width == 0.5
    assert all(player(moving, policy.content, 60).contextual for policy in experiment.policies)
    outcome = run_experiment(experiment, tmp_path / "out")
    assert outcome is not None and any((tmp_path / "out").rglob("*"))
