"""What a policy knew and played, at rounds spaced so that every stage of learning gets its share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit._records import ALPHA, BETA
from semibandit.engines.base import Engine
from semibandit.errors import ParameterError

if TYPE_CHECKING:
    from semibandit.environments import Environment
    from semibandit.policies import Policy

MOST_ARMS = 2_000


@dataclass(frozen=True)
class Frame:
    """One round: what was played, and what was known when it was chosen. None: never seen, or no such index."""

    round: int
    arms: list[int]
    regret: float
    counts: list[int]
    means: list[float | None]
    upper: list[float | None]


@dataclass(frozen=True)
class Recording:
    """A policy learning in an environment. `best` is the optimal base."""

    policy: str
    env: Environment
    best: list[int]
    frames: list[Frame]

    def order(self) -> list[int]:
        """All arms, those of the best base first, then by true mean: how a list shows them."""
        best, means = set(self.best), self.env.means.tolist()
        return sorted(range(len(means)), key=lambda k: (k not in best, -means[k], k))

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
    policy: Policy, env: Environment, rounds: int, frames: int = 60, label: str | None = None
) -> Recording:
    """Let `policy` play `rounds` rounds in `env` and keep about `frames` of them, log-spaced. O(rounds + frames K).

    `label` names the policy in what is made of the recording.
    """
    for name, value in (("rounds", rounds), ("frames", frames)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name} must be a positive integer, got {value!r}")
    if env.n_arms > MOST_ARMS:
        raise ParameterError(f"env has {env.n_arms:,} arms: watching is for at most {MOST_ARMS:,}")
    marks = {rounds, *np.round(np.geomspace(1, rounds, frames)).astype(int).tolist()}
    kept = []
    regret = 0.0
    for t in range(1, rounds + 1):
        arms = policy.select()
        regret += env.regret(arms)
        if t in marks:
            kept.append(_frame(policy, t, arms, regret))
        policy.update(arms, env.draw(arms, policy.t))
    return Recording(label or policy.name, env, env.optimal_base.tolist(), kept)


def _frame(policy: Policy, t: int, arms: Any, regret: float) -> Frame:
    counts, means = policy.counts.tolist(), policy.means.tolist()
    known = [mean if n > 0 else None for mean, n in zip(means, counts, strict=True)]
    return Frame(t, arms.tolist(), regret, counts, known, _index(policy))


def _index(policy: Policy) -> list[float | None]:
    """The weights that the policy's engine chose by, None where they are infinite or there is no such engine."""
    engine = getattr(policy, "_engine", None)
    if not isinstance(engine, Engine):
        return [None] * policy.n_arms
    weights = engine._recs[:, ALPHA] + engine.lam * engine._recs[:, BETA]
    return [float(weight) if np.isfinite(weight) else None for weight in weights]
