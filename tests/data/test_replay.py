"""Off-policy evaluation: estimators against naive ones, propensities, refusals, results, warm starts."""

from __future__ import annotations

import builtins
import json
import math

import numpy as np
import pytest

import semibandit as sb
from oracles.off_policy import SkewedLogger, effective, per_arm, per_base
from semibandit.data.replay import random_log, read_log, replay, uniformity, warm_start
from semibandit.data.replay.propensities import chi_square_tail
from semibandit.errors import ArmError, MissingExtraError, ParameterError

MATROID = sb.Uniform(5, 2)
LOGGER = SkewedLogger([4.0, 2.0, 1.0, 1.0, 0.5], 2)
MEANS = [0.2, 0.8, 0.5, 0.6, 0.3]
MODEL = np.array([0.3, 0.6, 0.4, 0.9, 0.0])
ALL = ("ips", "snips", "clipped", "dr")


def tiny(rounds=12, seed=0, *leave):
    """Columns of a small log, and its rounds as dictionaries."""
    table = LOGGER.log(MEANS, rounds, seed)
    logged = [{} for _ in range(rounds)]
    for t, arm, reward in zip(table["round"], table["arm"], table["reward"], strict=True):
        logged[t][arm] = reward
    return {name: cells for name, cells in table.items() if name not in leave}, logged


def without(table, *names):
    return {name: cells for name, cells in table.items() if name not in names}


def values(found):
    return {one.estimator: one.value for one in found.estimates}


def by_arm(t, arm):
    return LOGGER.arm_chance[arm]


def model(t, arm):
    return float(MODEL[arm])


def chance_of_base(logged):
    return lambda t: LOGGER.chance[LOGGER.bases.index(tuple(sorted(logged[t])))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("base", [(0, 1), (1, 3), (2,)])
def test_estimates_are_the_naive_ones(seed, base):
    table, logged = tiny(60, seed)
    log = read_log(table, MATROID)
    chosen = [base] * 60
    found = replay(base, log, "arms", model=MODEL, clip=1.8, resamples=5)
    assert values(found) == pytest.approx(per_arm(logged, chosen, by_arm, model, 1.8))
    assert found.propensities == "logged" and found.chosen_arms == 60 * len(base)
    shared = [[arm for arm in base if arm in one] for one in logged]
    assert found.matched_arms == sum(map(len, shared))
    assert found.matched_rounds == sum(set(base) == set(one) for one in logged)
    weights = [sum(1 / LOGGER.arm_chance[arm] for arm in arms) / len(base) for arms in shared]
    for name in ("ips", "snips", "dr"):
        assert found[name].effective_samples == pytest.approx(effective(weights))
    cut = [sum(min(1.8, 1 / LOGGER.arm_chance[arm]) for arm in arms) / len(base) for arms in shared]
    assert found["clipped"].effective_samples == pytest.approx(effective(cut))
    if len(base) == 2:
        found = replay(base, log, "base", model=MODEL, clip=3.0, resamples=5)
        chance = chance_of_base(logged)
        assert found.matched_rounds > 0
        assert values(found) == pytest.approx(per_base(logged, chosen, chance, model, 3.0))
        weights = [(set(one) == set(base)) / chance(t) for t, one in enumerate(logged)]
        assert found["ips"].effective_samples == pytest.approx(effective(weights))


class Recorder(sb.CUCB):
    """Notes what it chose and what it was told."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.chose, self.told = [], []

    def select(self, exclude=None):
        self.chose.append(super().select().tolist())
        return np.array(self.chose[-1])

    def update(self, arms, rewards):
        self.told.append(dict(zip(arms.tolist(), rewards.tolist(), strict=True)))
        super().update(arms, rewards)


@pytest.mark.parametrize("match", ["arms", "base"])
def test_a_policy_is_judged_by_what_it_chose_and_told_what_it_shares(match):
    table, logged = tiny(80, 3)
    policy = Recorder(MATROID)
    found = replay(policy, read_log(table, MATROID), match, model=MODEL, clip=2.0, resamples=2)
    assert len({tuple(base) for base in policy.chose}) > 3
    if match == "arms":
        wanted = per_arm(logged, policy.chose, by_arm, model, 2.0)
    else:
        wanted = per_base(logged, policy.chose, chance_of_base(logged), model, 2.0)
    assert values(found) == pytest.approx(wanted)
    shared = [
        {arm: one[arm] for arm in base if arm in one} for base, one in zip(policy.chose, logged, strict=True)
    ]
    assert policy.told == [one for one in shared if len(one) == 2 or (one and match == "arms")]
    assert found.policy == "cucb"
    frozen = Recorder(MATROID)
    replay(frozen, read_log(table, MATROID), match, learn=False, resamples=2)
    assert len(frozen.chose) == 80 and frozen.told == [] and frozen.counts.sum() == 0


def test_functions_of_the_round():
    table, logged = tiny(40, 5)
    table["round"] = [f"page {t}" for t in table["round"]]
    log = read_log(table, MATROID)

    def even_odd(name):
        return [1, 0] if int(name.split()[1]) % 2 else [3]

    chosen = [[0, 1] if t % 2 else [3] for t in range(40)]
    asked = []

    def guess(name, arms):
        asked.append((name, arms.tolist()))
        return MODEL[arms] + 0.01 * int(name.split()[1])

    found = replay(even_odd, log, "arms", model=guess, clip=2.0, resamples=2)
    wanted = per_arm(logged, chosen, by_arm, lambda t, arm: float(MODEL[arm]) + 0.01 * t, 2.0)
    assert values(found) == pytest.approx(wanted) and found.policy == "even_odd"
    assert [sorted(arms) for _, arms in asked] == [sorted(arms) for arms in chosen]


def test_models_that_learn_know_nothing_of_the_round():
    table, logged = tiny(50, 6)
    log = read_log(table, MATROID)

    def before(t, arm):
        """The mean of the arm, and one reward more: the mean of everything, which begins as the middle."""
        past = [one for one in logged[:t]]
        rewards = [reward for one in past for reward in one.values()]
        own = [one[arm] for one in past if arm in one]
        return (sum(own) + (0.5 + sum(rewards)) / (1 + len(rewards))) / (len(own) + 1)

    chosen = [(1, 3)] * 50
    found = replay([1, 3], log, "arms", estimators="dr", resamples=2)
    assert found["dr"].value == pytest.approx(per_arm(logged, chosen, by_arm, before, 1.0)["dr"])
    policy = Recorder(MATROID)
    found = replay(policy, log, "arms", model="policy", resamples=2)
    told = [
        {arm: one[arm] for arm in base if arm in one} for base, one in zip(policy.chose, logged, strict=True)
    ]

    def own_mean(t, arm):
        own = [one[arm] for one in told[:t] if arm in one]
        return sum(own) / len(own) if own else 0.5

    wanted = per_arm(logged, policy.chose, by_arm, own_mean, 1.0)["dr"]
    assert found["dr"].value == pytest.approx(wanted)


def test_one_number_as_model_and_costs():
    table, logged = tiny(30, 7)
    log = read_log(table, MATROID)
    found = replay([0, 1], log, "arms", model=0.5, estimators=["dr"], resamples=2)
    wanted = per_arm(logged, [(0, 1)] * 30, by_arm, lambda t, arm: 0.5, 1.0)["dr"]
    assert found["dr"].value == pytest.approx(wanted)
    cheap = sb.minimize(sb.CUCB(MATROID))
    found = replay(cheap, log, model="policy", resamples=2)
    assert cheap.counts.sum() == found.matched_arms and math.isfinite(found["dr"].value)


# -- where propensities come from --------------------------------------------------------------------------------


def test_uniform_and_frequencies_against_counting():
    groups = sb.Partition([0, 0, 0, 1, 1], [1, 1])
    rows = [(t, arm, 1.0) for t, base in enumerate([(0, 3), (1, 4), (0, 4), (0, 3)]) for arm in base]
    table = dict(zip(("round", "arm", "reward"), map(list, zip(*rows, strict=True)), strict=True))
    log = read_log(table, groups)
    # Arm 0 thrice at 1/3, arm 3 twice at 1/2; the base twice, one of six.
    found = replay([0, 3], log, resamples=2)
    assert found.propensities == "uniform" and found["ips"].value == pytest.approx((3 * 3 + 2 * 2) / 4)
    assert replay([0, 3], log, "base", resamples=2)["ips"].value == pytest.approx(2 * 2 * 6 / 4)
    found = replay([0, 3], log, assume="frequencies", resamples=2)
    assert found.propensities == "frequencies" and found["ips"].value == pytest.approx(2.0)
    found = replay([0, 3], log, "base", assume="frequencies", resamples=2)
    assert found["ips"].value == pytest.approx(2.0) and found.match == "base"
    any_two = sb.Uniform(5, 2)
    log = read_log(table, any_two)
    assert replay([0, 3], log, resamples=2)["ips"].value == pytest.approx(5 * 2.5 / 4)
    assert replay([0, 3], log, "base", resamples=2)["ips"].value == pytest.approx(2 * 2 * 10 / 4)


@pytest.mark.parametrize("assume", [None, "uniform", "frequencies"])
@pytest.mark.parametrize(
    "matroid", [sb.Uniform(5, 2), sb.Partition([0, 0, 0, 0, 0], 2), sb.Laminar(5, [(range(5), 2)])], ids=repr
)
def test_logged_propensities_always_win(matroid, assume):
    table, logged = tiny(40, 1)
    log = read_log(table, matroid)
    found = replay([0, 2], log, assume=assume, resamples=2)
    assert found.propensities == "logged" and found.match == "arms"
    wanted = per_arm(logged, [(0, 2)] * 40, by_arm, model, 1.0)["ips"]
    assert found["ips"].value == pytest.approx(wanted)
    only_bases = read_log(without(table, "propensity"), matroid)
    found = replay([0, 2], only_bases, assume=assume, resamples=2)
    assert found.propensities == "logged" and found.match == "base"
    wanted = per_base(logged, [(0, 2)] * 40, chance_of_base(logged), model, 1.0)["ips"]
    assert found["ips"].value == pytest.approx(wanted)


def test_propensities_of_the_other_kind_are_not_taken():
    table, _ = tiny(40, 1)
    with pytest.raises(
        ParameterError, match=r"match = 'base' needs the probabilities of bases.*match='arms'"
    ):
        replay([0, 1], read_log(without(table, "base_propensity"), MATROID), "base")
    only_bases = without(table, "propensity")
    with pytest.raises(ParameterError, match=r"match = 'arms' needs the probabilities of arms.*match='base'"):
        replay([0, 1], read_log(only_bases, MATROID), "arms")
    found = replay([0, 1], read_log(only_bases, MATROID), "arms", assume="frequencies", resamples=2)
    assert found.propensities == "frequencies"
    # Probabilities of bases under the name of those of arms: their inverses add up to far more than five arms.
    table, _ = tiny(400, 1)
    with pytest.raises(ParameterError, match="cannot be the probability that an arm is in the logged base"):
        replay([0, 1], read_log(table, MATROID, columns={"propensity": "base_propensity"}), "arms")


def test_a_skewed_log_without_propensities_is_refused():
    table, _ = tiny(400, 2)
    log = read_log(without(table, "propensity", "base_propensity"), MATROID)
    assert uniformity(log) < 1e-6
    policy = sb.CUCB(MATROID)
    for match in ("arms", "base"):
        with pytest.raises(
            ParameterError, match=r"not uniformly random \(p .*arm 0 occurs.*assume='uniform'"
        ):
            replay(policy, log, match)
    assert policy.t == 0
    assert replay(policy, log, assume="uniform", resamples=2).propensities == "uniform"


def test_whole_bases_and_known_classes_without_propensities():
    table = {"round": [5, 5, 6], "arm": [0, 1, 2], "reward": [1, 1, 1]}
    log = read_log(table, MATROID)
    for assume in (None, "uniform"):
        with pytest.raises(ParameterError, match=r"row 3: round 6 has 1 arms, a base of .* has 2"):
            replay([0], log, assume=assume)
    with pytest.raises(ParameterError, match="row 3: round 6 has 1 arms"):
        uniformity(log)
    assert replay([0], log, assume="frequencies", resamples=2)["ips"].value == pytest.approx(1.0)
    tree = sb.Graphic([(0, 1), (1, 2), (2, 0)])
    log = read_log(table, tree)
    for assume in (None, "uniform"):
        with pytest.raises(ParameterError, match=r"not known for Graphic.*assume='frequencies'"):
            replay([0], log, assume=assume)
    with pytest.raises(ParameterError, match="uniform and partition matroids only"):
        uniformity(log)


@pytest.mark.parametrize(
    "matroid",
    [
        sb.Uniform(20, 3),
        sb.Uniform(4, 2),
        sb.Uniform(3, 3),
        sb.Uniform(3000, 2),
        sb.Partition([0, 0, 0, 0, 1, 1, 1, 2, 2], [2, 1, 2]),
    ],
    ids=repr,
)
def test_uniform_logs_pass_and_their_p_values_are_uniform(matroid):
    rng = np.random.default_rng(4)
    found = []
    for _ in range(60):
        bases = [matroid.max_weight_base(rng.random(matroid.n_arms)) for _ in range(150)]
        arms = np.concatenate(bases)
        table = {"round": np.repeat(np.arange(150), matroid.rank), "arm": arms, "reward": np.ones(arms.size)}
        found.append(uniformity(read_log(table, matroid)))
    if matroid.rank == matroid.n_arms:
        assert found == [1.0] * 60
        return
    stats = pytest.importorskip("scipy.stats")
    assert min(found) > 1e-4 and stats.kstest(found, "uniform").pvalue > 1e-3


def test_the_tail_of_chi_square():
    special = pytest.importorskip("scipy.special")
    for freedom in (1, 2, 3, 4, 19, 100, 999, 20_000):
        for value in (0.01, 1.0, freedom * 0.7, freedom + 0.0, freedom * 1.5, freedom + 60.0):
            got, wanted = chi_square_tail(value, freedom), float(special.gammaincc(freedom / 2, value / 2))
            assert got == pytest.approx(wanted, rel=1e-8, abs=1e-290), (freedom, value)
    assert chi_square_tail(0.0, 3) == chi_square_tail(5.0, 0) == 1.0


# -- intervals and results ---------------------------------------------------------------------------------------


def test_intervals_are_those_of_a_bootstrap_over_rounds():
    table, logged = tiny(200, 9)
    log = read_log(table, MATROID)
    found = replay([0, 1], log, "arms", resamples=4000, seed=1)
    sums = np.array([sum(one.get(arm, 0) / LOGGER.arm_chance[arm] for arm in (0, 1)) for one in logged])
    share = np.array([sum((arm in one) / LOGGER.arm_chance[arm] for arm in (0, 1)) / 2 for one in logged])
    rng = np.random.default_rng(99)
    picks = rng.integers(0, 200, size=(4000, 200))
    for name, drawn in (
        ("ips", sums[picks].mean(axis=1)),
        ("snips", sums[picks].sum(axis=1) / share[picks].sum(axis=1)),
    ):
        low, high = np.quantile(drawn, [0.025, 0.975])
        one = found[name]
        assert one.low == pytest.approx(low, abs=0.02) and one.high == pytest.approx(high, abs=0.02)
        assert one.standard_error == pytest.approx(drawn.std(), rel=0.06)
        assert one.low < one.value < one.high
    again = replay([0, 1], log, "arms", resamples=4000, seed=1)
    other = replay([0, 1], log, "arms", resamples=4000, seed=2)
    assert again == found and other != found and values(other) == values(found)


def test_what_the_log_cannot_tell():
    table = {"round": [1, 2], "arm": [0, 0], "reward": [1, 0], "propensity": [0.5, 0.5]}
    log = read_log(table, MATROID)
    found = replay([1, 2], log)
    assert found.unseen_arms == 4 and found.matched_arms == 0
    assert found["ips"].value == 0.0 and math.isnan(found["ips"].low) and math.isnan(found["snips"].value)
    assert all(one.effective_samples == 0.0 for one in found.estimates)
    assert "tells nothing of this policy" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["estimates"][1]["value"] is None
    found = replay([0, 1], log)
    assert found.unseen_arms == 2 and "2 chosen arms occur nowhere in the log" in str(found)
    one = replay([0], read_log({name: cells[:1] for name, cells in table.items()}, MATROID))
    assert one["ips"].value == 2.0 and math.isnan(one["ips"].high)


def test_results_are_shown():
    table, _ = tiny(100, 2)
    found = replay([0, 1], read_log(table, MATROID), estimators=("snips", "ips", "snips"), resamples=50)
    assert [one.estimator for one in found.estimates] == ["snips", "ips"]
    assert repr(found).startswith("<replay of arms 0, 1, 100 rounds: snips ") and len(repr(found)) < 120
    lines = str(found).splitlines()
    assert "by arms, propensities: logged" in lines[0]
    assert lines[2].split("  ")[0] == "estimator" and lines[4].startswith("snips") and len(lines) == 6
    told = found.to_dict()
    assert told["policy"] == "arms 0, 1" and told["estimates"][1]["value"] == found["ips"].value
    with pytest.raises(ParameterError, match="estimator = 'dr' was not asked for: snips, ips"):
        found["dr"]

    def odd_name(name):
        return [0]

    odd_name.__name__ = "<b>&"
    page = replay(odd_name, read_log(table, MATROID), resamples=5)._repr_html_()
    assert "&lt;b&gt;&amp;" in page and "<b>" not in page and page.count("<tr>") == 5


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_as_frames(library, monkeypatch):
    module = pytest.importorskip(library)
    table, _ = tiny(50, 2)
    found = replay([0, 1], read_log(table, MATROID), resamples=50)
    frame = found.to_frame(library)
    assert isinstance(frame, module.DataFrame)
    assert list(frame.columns) == ["policy", *found.estimates[0]._fields]
    assert list(frame["estimator"]) == list(ALL)
    assert list(frame["high"]) == [one.high for one in found.estimates]
    with pytest.raises(ParameterError, match="kind = 'arrow'"):
        found.to_frame("arrow")
    imported = builtins.__import__

    def lacking(name, *rest):
        if name == library:
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtraError, match=r"pip install 'semibandit\["):
        found.to_frame(library)


def test_arguments_are_checked_before_anything_is_changed():
    table, _ = tiny(40, 1)
    log = read_log(table, MATROID)
    policy = sb.CUCB(MATROID)
    for options, text in (
        ({"match": "round"}, "match = 'round'"),
        ({"estimators": "mean"}, "estimator = 'mean' is not known: one of ips, snips"),
        ({"estimators": []}, "estimators is empty"),
        ({"assume": "skewed"}, "assume = 'skewed'"),
        ({"clip": 0.0}, "clip must be"),
        ({"resamples": 0}, "resamples must be"),
        ({"seed": -1}, "seed must be"),
        ({"model": "mine"}, "model = 'mine'"),
        ({"model": [0.5]}, "model must have one value per arm"),
        ({"model": [math.nan] * 5}, "model must be finite"),
    ):
        with pytest.raises(ParameterError, match=text):
            replay(policy, log, **options)
    with pytest.raises(ParameterError, match="policy has 4 arms, the log's matroid 5"):
        replay(sb.CUCB(sb.Uniform(4, 1)), log)
    narrow = sb.CUCB(MATROID, reward_range=(0.0, 0.5))
    with pytest.raises(ParameterError, match="outside the policy's reward_range"):
        replay(narrow, log)
    assert policy.t == narrow.t == 0
    clips = sb.CUCB(MATROID, reward_range=(0.0, 0.5), outside="clip")
    replay(clips, log)
    assert clips.clipped > 0
    with pytest.raises(ArmError, match=r"policy\[1\] = 5"):
        replay([0, 5], log)
    with pytest.raises(ArmError, match="named twice"):
        replay([0, 0], log)
    with pytest.raises(ParameterError, match=r"arms \[0, 1, 2\] are not independent"):
        replay([2, 1, 0], log)
    with pytest.raises(ArmError, match="policy"):
        replay(lambda t: [7], log)
    with pytest.raises(ParameterError, match="model = 'policy' goes with a policy"):
        replay([0, 1], log, model="policy")
    with pytest.raises(ParameterError, match=r"must give one value per arm \(2\), got 1"):
        replay([0, 1], log, model=lambda t, arms: [0.5])


def test_warm_start_tells_everything():
    table = {"round": [1, 1, 2, 2], "arm": [0, 3, 4, 1], "reward": [0.5, 1.0, 0.0, 0.25]}
    policy = sb.CUCB(MATROID)
    assert warm_start(policy, read_log(table, MATROID)) == 4
    assert policy.counts.tolist() == [1, 1, 0, 1, 1] and policy.t == 0
    assert policy.means[3] == 1.0


def test_random_logs_are_logs(tmp_path):
    pytest.importorskip("polars")
    matroid = sb.Partition([0, 0, 0, 1, 1], [1, 1])
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 5), seed=2)
    frame = random_log(env, 3000, seed=1)
    frame.write_parquet(tmp_path / "l.parquet")
    log = read_log(tmp_path / "l.parquet", matroid)
    assert len(log) == 3000 and uniformity(log) > 1e-6
    for match in ("arms", "base"):
        for one in replay([0, 4], log, match, clip=1e9, resamples=100).estimates:
            assert abs(one.value - 1.0) < 5 * one.standard_error
