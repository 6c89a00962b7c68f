"""What a policy knew and played, at rounds spaced so that every stage of learning gets its share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.engines.base import Engine
from semibandit.errors import ParameterError
from semibandit.policies.costs import mirror_at

if TYPE_CHECKING:
    from semibandit.environments import Environment
    from semibandit.policies import Policy

MOST_ARMS = 50_000


@dataclass(frozen=True)
class Frame:
    """One round: what was played, and what was known when it was chosen. None: never seen, or no such index."""

    round: int
    arms: list[int]
    regret: float
    counts: list[int]
    means: list[float | None]
    index: list[float | None]


@dataclass(frozen=True)
class Recording:
    """A policy learning in an environment. `best` is the optimal base, `labels` name the arms."""

    policy: str
    env: Environment
    best: list[int]
    frames: list[Frame]
    labels: list[str] | None = None

    def shown(self, most: int = 60) -> list[int]:
        """The arms of a list: the best base first, then the others by true mean; of many, those tried most."""
        best, means, tried = set(self.best), self.env.means.tolist(), self.last.counts
        sign = 1.0 if self.env.objective == "min" else -1.0
        others = sorted((k for k in range(len(means)) if k not in best), key=lambda k: (-tried[k], k))
        kept = [*self.best, *others[: max(0, most - len(best))]]
        return sorted(kept, key=lambda k: (k not in best, sign * means[k], k))

    def name(self, arm: int) -> str:
        """What an arm is called, cut to what fits beside a bar."""
        label = f"arm {arm}" if self.labels is None else self.labels[arm]
        return label if len(label) <= 18 else label[:17] + "\u2026"

    @property
    def last(self) -> Frame:
        """The end of it."""
        return self.frames[-1]

    def caption(self, frame: Frame) -> str:
        """``round 1,000: regret 12.3 so far, 4 of 5 right``."""
        right = len(set(frame.arms) & set(self.best))
        return (
            f"round {frame.round:,}: regret {frame.regret:,.1f} so far, "
            f"{right} of {len(self.best)} as in the best choice"
        )


def record(
    policy: Policy,
    env: Environment,
    rounds: int,
    frames: int = 60,
    label: str | None = None,
    labels: list[str] | None = None,
) -> Recording:
    """Let `policy` play `rounds` rounds in `env` and keep about `frames` of them, log-spaced. O(rounds + frames K).

    `label` names the policy, and `labels` the arms, in what is made of the recording.
    """
    for name, value in (("rounds", rounds), ("frames", frames)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name} must be a positive integer, got {value!r}")
    if env.n_arms > MOST_ARMS:
        raise ParameterError(f"env has {env.n_arms:,} arms: watching is for at most {MOST_ARMS:,}")
    if labels is not None and len(labels) != env.n_arms:
        raise ParameterError(f"labels must be one per arm ({env.n_arms}), got {len(labels)}")
    marks = {rounds, *np.round(np.geomspace(1, rounds, frames)).astype(int).tolist()}
    kept = []
    regret = 0.0
    for t in range(1, rounds + 1):
        arms = policy.select()
        regret += env.regret(arms)
        if t in marks:
            kept.append(_frame(policy, t, arms, regret))
        policy.update(arms, env.draw(arms, policy.t))
    return Recording(label or policy.name, env, env.optimal_base.tolist(), kept, labels)


def _frame(policy: Policy, t: int, arms: Any, regret: float) -> Frame:
    counts, means = policy.counts.tolist(), policy.means.tolist()
    known = [mean if n > 0 else None for mean, n in zip(means, counts, strict=True)]
    return Frame(t, arms.tolist(), regret, counts, known, _index(policy))


def _index(policy: Policy) -> list[float | None]:
    """The weights that the policy's engine chose by, None where infinite or without such an engine."""
    engine = getattr(getattr(policy, "inner", policy), "_engine", None)
    if not isinstance(engine, Engine):
        return [None] * policy.n_arms
    weights = engine._recs[:, ALPHA] + engine.lam * engine._recs[:, BETA]
    if policy.objective == "min":
        weights = mirror_at(policy.reward_range) - weights
    return [float(weight) if np.isfinite(weight) else None for weight in weights]
