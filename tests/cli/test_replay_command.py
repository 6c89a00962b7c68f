"""`semibandit replay`: from a file to a table, and mistakes in one line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import semibandit as sb
from oracles.off_policy import SkewedLogger
from semibandit.cli.main import main
from semibandit.data.replay import read_log, replay

SIX = sb.Uniform(6, 2)
INLINE = '{ matroid = "uniform", arms = 6, rank = 2 }'
FEW = ["--resamples", "20"]


def call(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


@pytest.fixture
def skewed(tmp_path):
    """A CSV with names of its own, and the log in it."""
    table = SkewedLogger([3.0, 2.0, 1.5, 1.0, 1.0, 0.7], 2).log([0.2, 0.7, 0.4, 0.6, 0.8, 0.5], 300, seed=1)
    rows = zip(table["round"], table["arm"], table["reward"], table["propensity"], strict=True)
    text = "page;item;click;p\n" + "".join(f"{t};{arm};{reward};{p!r}\n" for t, arm, reward, p in rows)
    (tmp_path / "log.csv").write_text(text)
    return tmp_path / "log.csv", read_log(table, SIX)


NAMES = ["--column", "round=page", "--column", "arm=item", "--column", "reward=click"]


def test_a_csv_of_ones_own(skewed, tmp_path):
    path, log = skewed
    shop = tmp_path / "shop.toml"
    shop.write_text('[instance]\nmatroid = "uniform"\narms = 6\nrank = 2\n')
    for given in (INLINE, shop):
        told = call(
            path,
            "--matroid",
            given,
            *NAMES,
            "--column",
            "propensity=p",
            "--base",
            "1,4",
            "--policy",
            "kl-osm",
        )
        assert told.exit_code == 0, told.output
        found = replay([1, 4], log)
        for line in found.lines():
            assert any(
                row.startswith("arms 1,4") and line[0] in row and line[2] in row
                for row in told.output.splitlines()
            )
        assert "kl-osm" in told.output and "matched by arms, propensities: logged" in told.output
        assert "300 rounds, 600 rewards, Uniform(n_arms=6, rank=2)" in told.output


def test_json_and_estimators(skewed):
    path, log = skewed
    told = call(
        *[path, "--matroid", INLINE, *NAMES, "--column", "propensity=p", "--base", "4,1", "--json", *FEW],
        *["--estimator", "clipped", "--estimator", "dr", "--clip", "2.5", "--seed", "3"],
    )
    assert told.exit_code == 0, told.output
    given = json.loads(told.output)
    assert given["skipped"] == [] and list(given["policies"]) == ["arms 4,1"]
    found = replay([1, 4], log, estimators=["clipped", "dr"], clip=2.5, resamples=20, seed=3)
    assert given["policies"]["arms 4,1"] == found.to_dict()


def test_a_skewed_log_without_propensities(skewed):
    path, _ = skewed
    plain = [path, "--matroid", INLINE, *NAMES, *FEW]
    refused = call(*plain)
    assert refused.exit_code == 2 and "not uniformly random" in refused.output
    told = call(*plain, "--assume", "frequencies", "--match", "base")
    assert told.exit_code == 0 and "matched by base, propensities: frequencies" in told.output


def test_saved_policies_bring_their_matroid(skewed, tmp_path):
    path, log = skewed
    trained, warm = tmp_path / "trained.semibandit", tmp_path / "warm.semibandit"
    policy = sb.CUCB(SIX)
    policy.update([0, 1, 2, 3, 4, 5], [0, 1, 0, 0, 1, 0])
    policy.save(trained)
    options = [*NAMES, "--column", "propensity=p", "--json", *FEW]
    told = call(path, "--policy", trained, "--frozen", *options)
    assert told.exit_code == 0, told.output
    (given,) = json.loads(told.output)["policies"].values()
    assert given == replay(policy.clone(), log, learn=False, resamples=20).to_dict()
    assert sb.load(trained).counts.sum() == 6
    told = call(path, "--policy", trained, *options, "--warm", warm)
    assert told.exit_code == 0 and sb.load(warm).counts.sum() == 6 + 600


def test_random_logs_and_warm_starts(tmp_path):
    pytest.importorskip("polars")
    shop = tmp_path / "shop.toml"
    shop.write_text('[[instance]]\nmatroid = "partition"\ngroups = [0, 0, 0, 1, 1]\nreward_range = [0, 2]\n')
    for name in ("l.parquet", "l.csv"):
        made = call(tmp_path / name, "--matroid", shop, "--random", "200")
        assert made.exit_code == 0 and "200 random decisions" in made.output, made.output
    saved = tmp_path / "p.semibandit"
    told = call(tmp_path / "l.csv", "--matroid", shop, "--warm", saved, *FEW)
    assert told.exit_code == 0 and "cucb" in told.output and "told 400 rewards" in told.output, told.output
    assert sb.load(saved).reward_range == (0.0, 2.0)
    assert read_log(tmp_path / "l.parquet", sb.Partition([0, 0, 0, 1, 1]), (0.0, 2.0)).skipped == []
    lines = (tmp_path / "l.csv").read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join([*lines[:3], "7,9,1.0", *lines[3:]]))
    refused = call(tmp_path / "l.csv", "--matroid", shop)
    assert refused.exit_code == 2 and "row 3 (line 4): arm is not one of 0 .. 4" in refused.output
    told = call(tmp_path / "l.csv", "--matroid", shop, "--bad", "skip", *FEW)
    assert told.exit_code == 0 and "skipped row 3: arm is not one of" in told.output


def test_costs(tmp_path):
    (tmp_path / "l.csv").write_text(
        "round,arm,reward,propensity\n1,0,3,0.5\n2,1,5,0.5\n3,0,3,0.5\n4,1,5,0.5\n"
    )
    costs = '{ matroid = "uniform", arms = 2, rank = 1, reward_range = [0, 10], objective = "min" }'
    told = call(tmp_path / "l.csv", "--matroid", costs, "--policy", "greedy", "--json", *FEW)
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["policies"]["greedy"]["estimates"][1]["value"] < 5


MISTAKES = {
    "nothing is made up": [],
    "give one of them": ["--matroid", INLINE, "--dataset", "isp"],
    "random graphic matroid; describe yours by edges": [
        "--matroid",
        '{ matroid = "graphic", arms = 6, rank = 2 }',
    ],
    "not valid TOML": ["--matroid", "{ matroid = "],
    "instance.rank": ["--matroid", '{ matroid = "uniform", arms = 6, rank = "two" }'],
    "rank = 7": ["--matroid", '{ matroid = "uniform", arms = 6, rank = 7 }'],
    "nowhere.toml: cannot be read": ["--matroid", "nowhere.toml"],
    "write ROLE=NAME": ["--matroid", INLINE, "--column", "item"],
    "'item' is not known": ["--matroid", INLINE, "--column", "item=arm"],
    "has no column 'round'": ["--matroid", INLINE],
    "write arm ids": ["--matroid", INLINE, *NAMES, "--base", "one"],
    "--warm starts a policy": ["--matroid", INLINE, *NAMES, "--base", "1,2", "--warm", "w.semibandit"],
    "should end in .semibandit": ["--matroid", INLINE, "--warm", "w.txt"],
    "give --matroid or --dataset": ["--random", "10"],
    "policy = 'best' is not known": ["--matroid", INLINE, *NAMES, "--policy", "best"],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_told_in_one_line(text, skewed, monkeypatch):
    path, _ = skewed
    monkeypatch.chdir(path.parent)
    told = call(
        path, *MISTAKES[text], *(["--column", "propensity=p"] if "round=page" in MISTAKES[text] else [])
    )
    assert told.exit_code == 2 and text in told.output, told.output
    assert len(told.output.strip().splitlines()) == 1 and not (path.parent / "w.semibandit").exists()


def test_one_instance_a_file(skewed):
    path, _ = skewed
    file = path.parent / "many.toml"
    one = '[[instance]]\nmatroid = "uniform"\narms = 6\nrank = 2\n'
    for text, told in (
        (one * 2, "one table [instance] is wanted, the file has 2"),
        ("[experiment]\nname = 'x'\n", "one table [instance] is wanted, the file has none"),
        ("instance = 3\n", "the file has none"),
        ("instance = []\n", "the file has 0"),
    ):
        file.write_text(text)
        refused = call(path, "--matroid", file)
        assert refused.exit_code == 2 and told in refused.output
