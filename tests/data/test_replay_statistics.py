"""Off-policy evaluation on simulated skewed logs: no bias, and intervals that hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from oracles.off_policy import SkewedLogger
from semibandit.data.replay import read_log, replay

# The case that was reported: the logging policy prefers good items, the base in question holds few of them.
TWENTY = sb.Uniform(20, 3)
ITEMS = SkewedLogger(np.exp(np.linspace(1.5, -1.5, 20)).tolist(), 3)
CLICKS = np.linspace(0.9, 0.1, 20).tolist()
BASE = [3, 7, 11]
TRUTH = sum(CLICKS[arm] for arm in BASE)

SIX = sb.Uniform(6, 2)
PAIRS = SkewedLogger([3.0, 2.0, 1.5, 1.0, 1.0, 0.7], 2)
PAIR_MEANS = [0.2, 0.7, 0.4, 0.6, 0.8, 0.5]


def test_the_reported_case(tmp_path):
    """K = 20, D = 3: computed as if the log were uniform, the estimate is far above the truth."""
    table = ITEMS.log(CLICKS, 6000, seed=1)
    rows = zip(table["round"], table["arm"], table["reward"], table["propensity"], strict=True)
    text = "page,item,click,p\n" + "".join(f"{t},{arm},{reward},{p!r}\n" for t, arm, reward, p in rows)
    (tmp_path / "log.csv").write_text(text)
    names = {"round": "page", "arm": "item", "reward": "click", "propensity": "p"}
    log = read_log(tmp_path / "log.csv", TWENTY, columns=names)
    found = replay(BASE, log, resamples=300)
    assert found.propensities == "logged"
    for one in found.estimates:
        assert abs(one.value - TRUTH) < 4 * one.standard_error < 0.3
    best = [0, 1, 2]
    truth = sum(CLICKS[:3])
    right = replay(best, log, resamples=300)["ips"]
    assert abs(right.value - truth) < 4 * right.standard_error
    del table["propensity"], table["base_propensity"]
    as_if = replay(best, read_log(table, TWENTY), assume="uniform", resamples=300)["ips"]
    assert as_if.value > 1.5 * truth  # the skew is counted as value


def averages(matroid, logger, means, base, match, logs, rounds):
    """Value of each estimator on each of many logs, and whether its interval holds the truth."""
    truth = sum(means[arm] for arm in base)
    values: dict[str, list[float]] = {}
    held: dict[str, int] = {}
    for seed in range(logs):
        log = read_log(logger.log(means, rounds, seed), matroid)
        for one in replay(base, log, match, clip=2.0, resamples=400, seed=seed).estimates:
            values.setdefault(one.estimator, []).append(one.value)
            held[one.estimator] = held.get(one.estimator, 0) + (one.low <= truth <= one.high)
    return truth, {name: np.array(given) for name, given in values.items()}, held


CASES = [
    pytest.param(TWENTY, ITEMS, CLICKS, BASE, "arms", 400, id="arms"),
    pytest.param(SIX, PAIRS, PAIR_MEANS, [1, 4], "base", 600, id="base"),
]


def check_bias(truth, values):
    for name in ("ips", "snips", "dr"):
        error = values[name].std(ddof=1) / np.sqrt(len(values[name]))
        assert abs(values[name].mean() - truth) < 4 * error, name
    assert values["clipped"].mean() < 0.7 * truth  # weights are cut to 2 here: biased, and steadier
    assert values["clipped"].std() < values["ips"].std()
    assert values["dr"].std() < values["ips"].std()


@pytest.mark.parametrize(("matroid", "logger", "means", "base", "match", "rounds"), CASES)
def test_bias_and_coverage_on_some_logs(matroid, logger, means, base, match, rounds):
    truth, values, held = averages(matroid, logger, means, base, match, 30, rounds)
    check_bias(truth, values)
    for name in ("ips", "snips", "dr"):
        assert held[name] >= 24, name


@pytest.mark.slow
@pytest.mark.parametrize(("matroid", "logger", "means", "base", "match", "rounds"), CASES)
def test_intervals_cover_the_truth_in_95_of_100_logs(matroid, logger, means, base, match, rounds):
    truth, values, held = averages(matroid, logger, means, base, match, 200, rounds)
    check_bias(truth, values)
    for name in ("ips", "snips", "dr"):
        assert 180 <= held[name] <= 198, name


def test_a_learner_on_a_skewed_log_earns_what_its_choices_are_worth():
    """Unbiased round by round: the estimate is near the mean value of the bases that were chosen."""

    class Recorder(sb.CUCB):
        earned = 0.0

        def select(self, exclude=None):
            arms = super().select()
            self.earned += sum(CLICKS[arm] for arm in arms.tolist())
            return arms

    log = read_log(ITEMS.log(CLICKS, 4000, seed=5), TWENTY)
    policy = Recorder(TWENTY, exploration=0.3)
    found = replay(policy, log, model="policy", resamples=200)
    for one in found.estimates:
        assert abs(one.value - policy.earned / 4000) < 4 * one.standard_error, one.estimator
    uniform = 3 * float(np.mean(CLICKS))
    assert found["dr"].low > uniform
