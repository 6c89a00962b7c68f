"""Instances from real data: sizes, sane numbers, messages when something is missing."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import semibandit as sb
from semibandit import data
from semibandit.cli.main import main
from semibandit.data.networks import great_circle
from semibandit.errors import MissingExtraError, ParameterError


def need(name):
    if data.DATASETS[name].missing:
        pytest.skip(f"not installed: {data.DATASETS[name].missing}")


def plays(found, rounds=30):
    env = found.env
    assert len(found.labels) == env.n_arms == len(set(range(env.n_arms)))
    policy = sb.CUCB(env.matroid, reward_range=env.reward_range, clock="auto")
    if env.objective == "min":
        policy = sb.minimize(policy)
    result = sb.simulate(policy, env, rounds)
    assert result.regret[-1] >= 0.0
    best = env.optimal_base
    assert env.matroid.is_independent(best) and len(best) == env.matroid.rank
    return env


def test_isp():
    need("isp")
    found = data.load_dataset("isp")
    env = plays(found)
    assert env.objective == "min" and env.matroid.name == "graphic" and env.n_arms > 1000
    assert found.positions.shape == (env.matroid.n_vertices, 2) and len(found.vertices) == len(
        found.positions
    )
    assert env.means.min() >= 0.2 and env.means.max() < 200.0  # ms
    small = data.load_dataset("isp", network="topozoo/Abilene")
    assert small.env.n_arms == 14 and small.env.matroid.rank == 10
    with pytest.raises(ParameterError, match="network"):
        data.load("isp", network="topozoo/Nowhere")


@pytest.mark.parametrize("kind", ["graphic", "partition"])
def test_flights(kind):
    need("flights")
    env = plays(data.load_dataset("flights", kind=kind))
    assert env.objective == "min" and env.matroid.name == kind and env.n_arms > 1000
    assert env.means.min() > 0.5 and env.means.max() < 14.0  # hours
    with pytest.raises(ParameterError, match="kind"):
        data.load("flights", kind="laminar")


@pytest.mark.parametrize("kind", ["partition", "laminar", "transversal"])
def test_movies(kind):
    need("movies")
    found = data.load_dataset("movies", kind=kind)
    env = plays(found)
    assert env.objective == "max" and env.matroid.name == kind and env.n_arms > 2000
    assert env.means.min() >= 0.0 and env.means.max() <= 1.0 and 0.3 < env.means.mean() < 0.9
    with pytest.raises(ParameterError, match="min_reviews"):
        data.load("movies", min_reviews=10**6)
    with pytest.raises(ParameterError, match="capacity"):
        data.load("movies", capacity=0)


def test_great_circle():
    london, paris, quito = (-0.1278, 51.5074), (2.3522, 48.8566), (-78.4678, -0.1807)
    far = great_circle(np.array([london, quito, quito]), np.array([paris, quito, (101.5322, 0.1807)]))
    assert far == pytest.approx([344.0, 0.0, np.pi * 6371.0], rel=0.01)


def test_mistakes_are_told(monkeypatch):
    with pytest.raises(ParameterError, match="did you mean 'movies'"):
        data.load("movie")
    need("movies")
    with pytest.raises(ParameterError, match="no option 'colour'"):
        data.load("movies", colour=3)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"semibandit\[data\]"):
        data.load("movies")


def test_the_list():
    result = CliRunner().invoke(main, ["datasets"])
    assert result.exit_code == 0
    for entry in data.DATASETS.values():
        assert f"{entry.name}\n" in result.output and entry.licence.split()[0] in result.output
    assert '"K":' in CliRunner().invoke(main, ["datasets", "--json"]).output or data.DATASETS["isp"].missing
