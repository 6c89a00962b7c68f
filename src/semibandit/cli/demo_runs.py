"""What the demo plays: each class for a few seconds, and numpy beside it for a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.bench.contenders import numpy_contender
from semibandit.bench.start import snapshot
from semibandit.data.instances import random_environment
from semibandit.environments import Environment
from semibandit.policies import CUCB
from semibandit.simulation import simulate

# Rewards lie within half of this of their arm's mean; by Hoeffding's bound for that spread, CUCB's constant 1.5
# shrinks with its square and the guarantee stays.
NOISE = 0.1
EXPLORATION = 1.5 * NOISE**2

_RIVAL_SECONDS = 1.0


@dataclass(frozen=True)
class Show:
    """One class of the demo: its instance, and about how long it may play."""

    matroid: str
    arms: int
    rank: int
    seconds: float
    most_rounds: int

    def small(self) -> Show:
        """The same in a fraction of a second."""
        rank = min(self.rank, 10)
        arms = max(self.arms // 1000, 4 * rank)
        return Show(self.matroid, arms, rank, 0.15, 20_000)


SHOWS = (
    Show("uniform", 1_000_000, 10, 14.0, 2_000_000),
    Show("partition", 1_000_000, 100, 6.0, 500_000),
    Show("laminar", 100_000, 30, 4.0, 200_000),
    Show("graphic", 50_000, 499, 5.0, 100_000),
    Show("transversal", 10_000, 100, 4.0, 200_000),
    Show("linear", 1_000, 10, 3.0, 100_000),
)


class _Curve:
    """Cumulative rounds, regret and policy seconds of one policy, over several stretches of play."""

    def __init__(self, policy: CUCB, env: Environment) -> None:
        self.policy, self.env = policy, env
        self.rounds: list[int] = [0]
        self.regret: list[float] = [0.0]
        self.seconds: list[float] = [0.0]

    def play(self, n: int, record_arms: bool = False) -> IntArray | None:
        """`n` rounds more."""
        run = simulate(self.policy, self.env, n, record_arms=record_arms)
        base = self.rounds[-1], self.regret[-1], self.seconds[-1]
        self.rounds += (base[0] + run.rounds).tolist()
        self.regret += (base[1] + run.regret).tolist()
        self.seconds += (base[2] + run.select_seconds + run.update_seconds).tolist()
        return run.arms

    def play_until(self, seconds: float, most_rounds: int) -> None:
        """On to 1, 2, 5, 10, ... rounds while the next stretch should fit in `seconds` of policy time."""
        while self.rounds[-1] < most_rounds:
            n = next_round_number(self.rounds[-1]) - self.rounds[-1]
            n = min(n, most_rounds - self.rounds[-1])
            if self.rounds[-1] >= 100 and self.seconds[-1] + n * self.recent() > seconds:
                return
            self.play(n)

    def recent(self) -> float:
        """Seconds per round over about the last half of the rounds."""
        i = int(np.searchsorted(self.rounds, self.rounds[-1] / 2))
        i = min(i, len(self.rounds) - 2)
        return (self.seconds[-1] - self.seconds[i]) / (self.rounds[-1] - self.rounds[i])

    def lost(self, covered: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Rounds, seconds, and the average regret per round so far, in percent of the best possible reward.

        Points are log-spaced, and again from the end of the covering rounds on.
        """
        rounds = np.array(self.rounds)
        marks = np.concatenate(
            [
                np.geomspace(min(100, covered), covered, 8),
                covered + np.geomspace(10, max(rounds[-1] - covered, 11), 24),
            ]
        )
        picks = np.unique(np.searchsorted(rounds, marks.clip(max=rounds[-1])))
        picks = picks[picks > 0]
        share = 100 * np.array(self.regret)[picks] / rounds[picks] / self.env.optimal_value
        return rounds[picks], np.array(self.seconds)[picks], share


def next_round_number(n: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ... after n."""
    step = 1
    while True:
        for digit in (1, 2, 5):
            if digit * step > n:
                return digit * step
        step *= 10


def _beside(curve: _Curve, seconds: float) -> tuple[str, float, int, bool]:
    """Let numpy play from the state our policy is in, and ours the same rounds: its name, time, rounds, agreement."""
    rival = numpy_contender(snapshot(curve.policy, curve.env))
    rival.play(1)
    took: list[float] = []
    spent, played = 0.0, []
    while (spent < seconds or len(took) < 3) and len(took) < 2000:
        one, arms = rival.play(1)
        took.append(float(one[0]) * 1e-3)
        spent += took[-1] * 1e-6
        played.append(arms[0])
    arms_of = curve.play(len(played) + 1, record_arms=True)
    assert arms_of is not None
    same = all(np.array_equal(a, b[b >= 0]) for a, b in zip(played, arms_of[1:], strict=True))
    return rival.name, float(np.median(took)), len(played), same


def play_one(show: Show, seed: int) -> dict[str, Any]:
    """Cover all arms, let the rival play a moment from there, then go on for the rest of the time."""
    env = random_environment("noise", show.matroid, show.arms, show.rank, seed=seed, width=NOISE)
    policy = CUCB(env.matroid, reward_range=env.reward_range, exploration=EXPLORATION, clock="auto")
    curve = _Curve(policy, env)
    cover = -(-show.arms // show.rank)
    curve.play_until(show.seconds / 2, cover)
    # Where families limit what may be played together, covering takes longer than K / D rounds.
    while policy.counts.min() == 0 and curve.seconds[-1] < show.seconds / 2:
        curve.play(max(1, cover // 10))
    covered = curve.rounds[-1]
    rival, rival_us, checked, same = _beside(curve, min(_RIVAL_SECONDS, show.seconds))
    curve.play_until(show.seconds, show.most_rounds)
    marks, seconds, lost = curve.lost(covered)
    return {
        "name": show.matroid,
        "arms": show.arms,
        "rank": show.rank,
        "engine": policy.engine,
        "rounds": curve.rounds[-1],
        "us": 1e6 * curve.recent(),
        "rival": rival,
        "rival_us": rival_us,
        "checked": checked,
        "same": same,
        "covered": covered,
        "marks": marks.tolist(),
        "seconds": seconds.tolist(),
        "lost": lost.tolist(),
    }


def against_numpy(one: dict[str, Any]) -> dict[str, Any]:
    """The first class over computing time: ours, and numpy at its measured time per round.

    numpy gets the covering rounds (each arm once, in order) at our speed: it would not sort to find them.
    """
    marks, seconds = np.array(one["marks"]), np.array(one["seconds"])
    covered = float(np.interp(one["covered"], marks, seconds))
    after = np.maximum(marks - one["covered"], 0)
    theirs = np.where(after > 0, covered + after * one["rival_us"] * 1e-6, seconds)
    measured = covered + one["checked"] * one["rival_us"] * 1e-6
    return {**one, "rival_seconds": theirs.tolist(), "rival_measured": measured}


def play_all(
    seed: int, quick: bool, say: Callable[[str], None]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The million arms beside numpy, and a row per class."""
    classes = []
    for show in SHOWS:
        playing = show.small() if quick else show
        say(f"{playing.matroid}: {playing.arms:,} arms, {playing.rank:,} per round ...")
        classes.append(play_one(playing, seed))
    return against_numpy(classes[0]), classes
