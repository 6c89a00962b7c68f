"""Logs: malformed rows by number, replay against the truth, warm start."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.data.replay import random_log, read_log, replay, warm_start
from semibandit.errors import FileError, ParameterError

polars = pytest.importorskip("polars")

MATROID = sb.Uniform(6, 2)


def write(path, rows, schema=("round", "arm", "reward"), **types):
    polars.DataFrame(rows, schema=list(schema), orient="row", strict=False).cast(types).write_parquet(path)
    return path


GOOD = [(1, 0, 0.5), (1, 3, 1.0), (2, 5, 0.0), (2, 1, 0.25)]


def test_a_log_is_read_round_by_round(tmp_path):
    log = read_log(write(tmp_path / "l.parquet", [GOOD[3], GOOD[0], GOOD[2], GOOD[1]]), MATROID)
    assert log.rounds.tolist() == [1, 2] and log.starts.tolist() == [0, 2, 4]
    assert log.arms.tolist() == [0, 3, 1, 5] and log.rewards.tolist() == [0.5, 1.0, 0.25, 0.0]
    assert len(log) == 2 and log.skipped == []


BAD = {
    "arm is not one of": (2, 6, 0.5),
    "arm is not one of 0": (2, -1, 0.5),
    "arm is missing": (2, None, 0.5),
    "round is missing": (None, 2, 0.5),
    "reward is missing": (2, 2, None),
    "reward is not finite": (2, 2, float("nan")),
    "reward is outside": (2, 2, 1.5),
    "arm occurs twice": (1, 3, 0.5),
}


@pytest.mark.parametrize("text", BAD)
def test_malformed_rows_are_told_by_number_or_skipped(text, tmp_path):
    path = write(tmp_path / "l.parquet", [*GOOD[:2], BAD[text], GOOD[2]])
    with pytest.raises(FileError, match=f"row 3: {text}"):
        read_log(path, MATROID)
    log = read_log(path, MATROID, bad="skip")
    assert log.arms.tolist() == [0, 3, 5]
    assert [row for row, _ in log.skipped] == [3] and text in log.skipped[0][1]


def test_rounds_that_cannot_be_played_are_told(tmp_path):
    path = write(tmp_path / "l.parquet", [*GOOD, (3, 0, 0.1), (3, 1, 0.1), (3, 2, 0.1)])
    with pytest.raises(FileError, match="row 5: arms of the round cannot be played together"):
        read_log(path, MATROID)
    assert read_log(path, MATROID, bad="skip").rounds.tolist() == [1, 2]


def test_many_bad_rows_are_counted(tmp_path):
    path = write(tmp_path / "l.parquet", [*GOOD, *((9, 9, 0.1) for _ in range(20))])
    with pytest.raises(FileError, match="and 15 more"):
        read_log(path, MATROID)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        read_log(tmp_path / "text.parquet", MATROID)
    with pytest.raises(FileError, match="cannot be read"):
        read_log(tmp_path / "nowhere.parquet", MATROID)
    path = write(tmp_path / "l.parquet", [(1, 2)], ("round", "arm"))
    with pytest.raises(FileError, match="no column 'reward'"):
        read_log(path, MATROID)
    path = write(tmp_path / "m.parquet", [(1, 0.5, 0.5)])
    with pytest.raises(FileError, match="'arm' must hold integers"):
        read_log(path, MATROID)
    path = write(tmp_path / "n.parquet", [(1, 1, "high")])
    with pytest.raises(FileError, match="'reward' must hold numbers"):
        read_log(path, MATROID)
    path = write(tmp_path / "o.parquet", [(1, 9, 0.5)])
    with pytest.raises(FileError, match="no row is left"):
        read_log(path, MATROID, bad="skip")
    with pytest.raises(ParameterError, match="bad"):
        read_log(path, MATROID, bad="mend")
    path = write(tmp_path / "p.parquet", [(1, 1, 0.5, 0.0)], ("round", "arm", "reward", "probability"))
    with pytest.raises(FileError, match="probability is not in"):
        read_log(path, MATROID)


class Fixed(sb.CUCB):
    """Plays one base for ever."""

    base = (0, 1)

    def select(self, exclude=None):
        self._t += 1
        return np.array(self.base)


@pytest.mark.parametrize("match", ["arms", "base"])
def test_the_value_of_a_fixed_base_is_estimated_without_bias(match, tmp_path):
    for matroid, base in (
        (sb.Uniform(6, 2), (1, 4)),
        (sb.Partition([0, 0, 0, 1, 1], [1, 1]), (0, 4)),
        (sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]), (0, 1, 3)),
    ):
        means = np.linspace(0.1, 0.9, matroid.n_arms)
        env = sb.Bernoulli(matroid, means, seed=2)
        random_log(env, 6000, seed=1).write_parquet(tmp_path / "l.parquet")
        log = read_log(tmp_path / "l.parquet", matroid)
        policy = Fixed(matroid)
        policy.base = base
        result = replay(policy, log, match)
        truth = means[list(base)].sum()
        assert abs(result.value - truth) < 4 * result.standard_error + 1e-9
        assert abs(result.normalized - truth) < 6 * result.standard_error
        assert result.rounds == 6000 and 0 < result.effective_samples <= 6000
        if match == "base":
            assert result.effective_samples == result.matched_rounds
            # Random bases are uniform here: 15, 6 and 3 of them.
            n = {2: 15, 3: 3}.get(len(base)) if matroid.n_arms != 5 else 6
            assert abs(result.matched_rounds - 6000 / n) < 5 * np.sqrt(6000 / n)
        assert policy.counts.sum() == (
            result.matched_arms if match == "arms" else result.matched_rounds * len(base)
        )


def test_a_learning_policy_ends_up_above_random(tmp_path):
    matroid = sb.Uniform(10, 3)
    env = sb.Bernoulli(matroid, np.linspace(0.05, 0.95, 10), seed=3)
    random_log(env, 8000, seed=4).write_parquet(tmp_path / "l.parquet")
    log = read_log(tmp_path / "l.parquet", matroid)
    result = replay(sb.CUCB(matroid, exploration=0.5), log)
    assert result.value > 1.5 + 5 * result.standard_error  # random play earns 1.5 a round
    assert result.value < env.optimal_value + 4 * result.standard_error
    with pytest.raises(ParameterError, match="match"):
        replay(sb.CUCB(matroid), log, "round")
    with pytest.raises(ParameterError, match="log names arm"):
        replay(sb.CUCB(sb.Uniform(4, 1)), log)


def test_warm_start_tells_everything(tmp_path):
    log = read_log(write(tmp_path / "l.parquet", GOOD), MATROID)
    policy = sb.CUCB(MATROID)
    assert warm_start(policy, log) == 4
    assert policy.counts.tolist() == [1, 1, 0, 1, 0, 1] and policy.t == 0
    assert policy.means[3] == 1.0


def test_command_line(tmp_path):
    call = CliRunner()
    path = str(tmp_path / "l.parquet")
    made = call.invoke(main, ["replay", path, "--arms", "20", "--rank", "3", "--random", "500"])
    assert made.exit_code == 0 and "500 random decisions" in made.output
    saved = str(tmp_path / "p.semibandit")
    arguments = [
        "replay",
        path,
        "--arms",
        "20",
        "--rank",
        "3",
        "--policy",
        "cucb",
        "--policy",
        "kl-osm",
        "--warm",
        saved,
    ]
    told = call.invoke(main, arguments)
    assert told.exit_code == 0, told.output
    assert "kl-osm" in told.output and "eff. samples" in told.output and "1,500 rewards" in told.output
    assert sb.load(saved).counts.sum() == 1500
    wrong = call.invoke(main, ["replay", path, "--arms", "10", "--rank", "3"])
    assert wrong.exit_code == 2 and "row " in wrong.output
    as_json = call.invoke(main, ["replay", path, "--arms", "10", "--rank", "3", "--bad", "skip", "--json"])
    assert as_json.exit_code == 0 and '"skipped"' in as_json.output
