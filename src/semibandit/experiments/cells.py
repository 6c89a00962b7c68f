"""The cells of an experiment, (instance, policy, repeat): their names by content, and how one is run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit import __version__
from semibandit.experiments.definition import Experiment
from semibandit.experiments.instance_table import build_environment, build_located, located

if TYPE_CHECKING:
    from semibandit.environments import Environment
    from semibandit.policies import Policy

FORMAT = 1
# A cell computed by another minor version may differ: engines may break ties or sum in another order.
VERSION = ".".join(__version__.split(".")[:2])


@dataclass(frozen=True)
class Cell:
    """One run. `content` is all that determines its result, and `key` the hash of it."""

    instance: int
    policy: int
    repeat: int
    key: str
    content: dict[str, Any]


def canonical(value: Any) -> str:
    """One text for one value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_key(content: dict[str, Any]) -> str:
    """The name of a cell: 32 hexadecimal digits of a SHA-256 of its content."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()[:32]


def fingerprint(env: Environment) -> str:
    """Hash of what a data set held: the matroid's shape, the range and the means. O(K)."""
    about = f"{env.matroid!r} {env.reward_range} ".encode()
    return hashlib.sha256(about + env.means.tobytes()).hexdigest()[:32]


def build_all(experiment: Experiment) -> list[Environment]:
    """The environment of every instance; a mistake in one is an error that names its line."""
    return [build_located(one) for one in experiment.instances]


def check_policies(experiment: Experiment, worlds: list[Environment]) -> None:
    """Make every policy once on every instance, so that a wrong option is found before a long run."""
    from semibandit.errors import SemibanditError

    for policy in experiment.policies:
        for spec, env in zip(experiment.instances, worlds, strict=True):
            try:
                player(env, policy.content, experiment.rounds)
            except (SemibanditError, TypeError, ValueError) as error:
                raise located(policy.table, type(error)(f"{error} (on instance {spec.label!r})")) from None


def player(env: Environment, told: dict[str, Any], rounds: int, seed: int = 0) -> Policy:
    """The policy that `told` describes (name and options), ready for `env`: it minimises where `env` draws costs."""
    from semibandit.environments.linear_rewards import told_features
    from semibandit.policies.catalogue import build_policy
    from semibandit.policies.costs import minimize

    low, high = env.reward_range
    costs = env.objective == "min"
    context = {
        "horizon": rounds,
        "means": (low + high) - env.means if costs else env.means,
        **told_features(env),
    }
    made = build_policy(told["name"], told["options"], env.matroid, env.reward_range, seed, context)
    return minimize(made) if costs else made


def list_cells(experiment: Experiment, worlds: Sequence[Environment | None]) -> list[Cell]:
    """All cells, by instance, then policy, then repeat: the order of the results. `worlds` needs data sets only."""
    cells = []
    for i, instance in enumerate(experiment.instances):
        described, world = dict(instance.content), worlds[i]
        if "dataset" in described and world is not None:
            described["holds"] = fingerprint(world)
        for j, policy in enumerate(experiment.policies):
            for repeat in range(experiment.repeats):
                content = {
                    "format": FORMAT,
                    "version": VERSION,
                    "instance": described,
                    "policy": policy.content,
                    "rounds": experiment.rounds,
                    "checkpoints": list(experiment.checkpoints),
                    "seed": experiment.seed,
                    "repeat": repeat,
                }
                cells.append(Cell(i, j, repeat, content_key(content), content))
    return cells


def cells_of(experiment: Experiment) -> list[Cell]:
    """All cells, with no more built than it takes to know their names: the data sets."""
    worlds = [build_located(one) if "dataset" in one.content else None for one in experiment.instances]
    return list_cells(experiment, worlds)


def seeds_of(seed: int, repeat: int) -> tuple[int, int]:
    """Seeds of the rewards and of the policy in a repeat: the same as `compare` takes, for all policies alike.

    >>> seeds_of(0, 1) == seeds_of(0, 1) != seeds_of(0, 2)
    True
    """
    state = np.random.SeedSequence(seed).generate_state(2 * repeat + 2, dtype=np.uint64) >> np.uint64(1)
    return int(state[-2]), int(state[-1])


_kept: dict[str, Environment] = {}


def _environment(described: dict[str, Any]) -> Environment:
    """The environment of an instance; the latest one is kept, as its cells follow each other."""
    text = canonical(described)
    if text not in _kept:
        made = build_environment(described)
        _kept.clear()
        _kept[text] = made
    return _kept[text]


def run_cell(content: dict[str, Any]) -> dict[str, Any]:
    """Run the cell with this `content`: regret, reward and seconds at its checkpoints. Cost of `simulate`."""
    from semibandit.simulation import simulate

    env = _environment({key: value for key, value in content["instance"].items() if key != "holds"})
    reward_seed, policy_seed = seeds_of(content["seed"], content["repeat"])
    policy = player(env, content["policy"], content["rounds"], policy_seed)
    policy.reseed(policy_seed)
    world = env.clone(seed=reward_seed)
    run = simulate(policy, world, content["rounds"], content["checkpoints"], progress=False)
    return {
        "format": FORMAT,
        "rounds": run.rounds.tolist(),
        "regret": run.regret.tolist(),
        "reward": run.reward.tolist(),
        "select_seconds": run.select_seconds.tolist(),
        "update_seconds": run.update_seconds.tolist(),
        "path": run.path,
        "engine": str(run.about.get("engine", "")),
        "clock": str(run.about.get("clock", "")),
    }
