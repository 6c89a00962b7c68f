"""The log as a table, and what off-policy evaluation makes of it."""

from __future__ import annotations

import asyncio

import numpy as np
import polars
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit.cli.main import main
from semibandit.data.replay import read_log, replay
from semibandit.serve.wire import PolicySpec
from support.service import running

RANDOM = PolicySpec(policy="random", matroid={"kind": "uniform", "arms": 8, "rank": 2}, seed=3)
PAGE = PolicySpec(catalog={"kind": "uniform", "rank": 2, "labels": ["a", "b", ["c", 1]]})


def serve(folder, rounds):
    """Decisions of both policies, all rewarded but every tenth; and what their rewards were."""
    told = {}

    async def main():
        async with running(folder, {"random": RANDOM, "page": PAGE}) as client:
            service = client.service
            waiter = None
            for t in range(rounds):
                made, waiter = service.select("random", count=2)
                for i, one in enumerate(made):
                    rewards = [float(arm >= 6) for arm in one.arms]
                    told[2 * t + i] = dict(zip(one.arms, rewards, strict=True))
                    some = one.arms[:1] if t % 10 == 9 else one.arms
                    _, waiter = service.reward("random", one.decision, some, rewards[: len(some)])
                page, _ = service.select("page")
                _, waiter = service.reward("page", page[0].decision, None, [0.5, 1.0])
                if t == rounds // 2:
                    waiter = service.change_arms("random", [0, 1], None, insert=False)
            await waiter

    asyncio.run(main())
    return told


def test_export_and_replay(tmp_path):
    told = serve(tmp_path / "data", 200)
    out = tmp_path / "log.parquet"
    call = CliRunner().invoke
    done = call(main, ["log", "export", str(tmp_path / "data"), str(out), "--policy", "random"])
    assert done.exit_code == 0, done.output
    assert "written" in done.output and "360 decisions" in done.output
    frame = polars.read_parquet(out)
    assert frame.columns == ["round", "arm", "reward", "at", "propensity"]
    assert frame["reward"].to_list() == [float(arm >= 6) for arm in frame["arm"]]
    assert sorted(set(frame["propensity"].to_list())) == [2 / 8, 2 / 6], "two arms were deleted half way"
    matroid = sb.Uniform(n_arms=8, rank=2)
    log = read_log(out, matroid)
    assert len(log) == 360
    found = replay(np.array([6, 7]), log, estimators=("ips", "snips"))
    assert found["snips"].value == pytest.approx(2.0) and found["ips"].value == pytest.approx(2.0, abs=0.35)
    table = '{ matroid = "uniform", arms = 8, rank = 2 }'
    shown = call(main, ["replay", str(out), "--matroid", table, "--base", "6,7", "--estimator", "snips"])
    assert shown.exit_code == 0, shown.output
    assert "propensities" in shown.output
    for missing, rows in (("keep", 760), ("zero", 800)):
        options = ["--policy", "random", "--missing", missing]
        done = call(main, ["log", "export", str(tmp_path / "data"), str(tmp_path / "x.csv"), *options])
        assert done.exit_code == 0 and polars.read_csv(tmp_path / "x.csv").height == rows
    assert len(told) == 400


def test_labels_are_numbered_in_the_order_of_their_coming(tmp_path):
    serve(tmp_path / "data", 10)
    out = tmp_path / "page.parquet"
    done = CliRunner().invoke(main, ["log", "export", str(tmp_path / "data"), str(out), "--policy", "page"])
    assert done.exit_code == 0, done.output
    frame = polars.read_parquet(out)
    assert frame.columns == ["round", "arm", "reward", "at", "label"]
    assert set(zip(frame["arm"], frame["label"], strict=True)) == {(0, "a"), (1, "b"), (2, '["c",1]')}


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["data", "x.parquet", "--policy", "randon"], "did you mean 'random'"),
        (["nowhere", "x.parquet"], "there is no log in"),
        (["data", "x.txt"], "should end in .parquet or .csv"),
    ],
)
def test_mistakes_are_one_line(arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    serve(tmp_path / "data", 1)
    done = CliRunner().invoke(main, ["log", "export", *arguments])
    assert done.exit_code == 2 and told in done.output
