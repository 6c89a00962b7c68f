"""Watching a policy learn: what is recorded, and the pages and pictures made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import semibandit as sb
from semibandit.cli.main import main
from semibandit.errors import ParameterError
from semibandit.report.watch import layout, list_page, network_page, random_list, random_network, record
from support.html_page import Page

PNG = b"\x89PNG\r\n\x1a\n"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    told: dict[str, object] = json.loads(found.group(1))
    return told


def test_a_recording_is_what_simulate_plays() -> None:
    env = random_list(12, 4, seed=2)
    recording = record(sb.CUCB(env.matroid, exploration=0.5), env.clone(), rounds=300, frames=30)
    run = sb.simulate(
        sb.CUCB(env.matroid, exploration=0.5), env.clone(), 300, record_arms=True, record_every=1
    )
    assert run.arms is not None
    assert recording.frames[0].round == 1 and recording.last.round == 300
    for frame in recording.frames:
        assert frame.arms == sorted(run.arms[frame.round - 1].tolist())
        assert frame.regret == pytest.approx(run.regret[frame.round - 1])
        assert sum(frame.counts) == 4 * (frame.round - 1), "what was known when the choice was made"
    late = recording.last
    chosen = sorted(range(12), key=lambda k: (-(late.index[k] or np.inf), k))[:4]
    assert sorted(chosen) == late.arms, "the bars explain the choice"
    assert recording.frames[0].means == [None] * 12
    assert "round 300: regret" in recording.caption(late)


@pytest.mark.parametrize("seed", range(5))
def test_the_network_is_planar_connected_and_reproducible(seed: int) -> None:
    networkx = pytest.importorskip("networkx")
    env, positions = random_network(20, seed)
    again, same = random_network(20, seed)
    assert np.array_equal(env.means, again.means) and np.array_equal(positions, same)
    matroid = env.matroid
    assert isinstance(matroid, sb.Graphic) and matroid.rank == 19
    graph = networkx.Graph(list(zip(matroid._tail.tolist(), matroid._head.tolist(), strict=True)))
    assert networkx.is_connected(graph) and networkx.check_planarity(graph)[0]


def test_a_graph_without_a_map_gets_places() -> None:
    matroid = sb.Graphic([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    places = layout(matroid, seed=1)
    assert places.shape == (4, 2) and np.isfinite(places).all()
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(4)
    assert apart.min() > 0.05


def test_the_pages_are_well_formed_and_load_nothing() -> None:
    env, positions = random_network(10, 1)
    network = network_page(record(sb.CUCB(env.matroid), env, 100, 12), positions, title="<i>map</i>")
    items = random_list(8, 3, 1)
    listed = list_page(record(sb.CUCB(items.matroid), items, 100, 12, labels=["</script><b>"] * 8))
    for text in (network, listed):
        page = Page(text)
        assert page.open == [] and page.addresses == ["data:,"]
        assert "i" not in page.seen[:8] and "b" not in page.seen
        assert not re.search(r"https?://", text)
        told = data_of(text)
        assert isinstance(told["frames"], list)
        assert "regret" in told["frames"][-1]["caption"]
    assert network.count('class="edge"') == env.n_arms and network.count('class="node"') == 10
    assert listed.count('class="row"') == 8


def test_mistakes() -> None:
    env = random_list(6, 2)
    recording = record(sb.CUCB(env.matroid), env, 10, 5)
    with pytest.raises(ParameterError, match="needs a Graphic matroid"):
        network_page(recording, np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="labels must be one per arm"):
        record(sb.CUCB(env.matroid), env, 10, labels=["a"])
    with pytest.raises(ParameterError, match="rounds must be"):
        record(sb.CUCB(env.matroid), env, 0)
    with pytest.raises(ParameterError, match="at most 50,000"):
        large = random_list(50_001, 2)
        record(sb.CUCB(large.matroid), large, 5)
    with pytest.raises(ParameterError, match="nodes must lie between"):
        random_network(2)
    net, _ = random_network(5)
    with pytest.raises(ParameterError, match="positions must be 5 pairs"):
        network_page(record(sb.CUCB(net.matroid), net, 5), np.zeros((4, 2)))
    assert call("watch", "--out", "watch.txt").exit_code == 2


@pytest.mark.parametrize("kind", ["network", "list"])
@pytest.mark.parametrize("suffix", [".html", ".gif", ".png"])
def test_the_command_writes_pages_animations_and_pictures(tmp_path: Path, kind: str, suffix: str) -> None:
    if suffix != ".html":
        pytest.importorskip("matplotlib")
    out = tmp_path / f"watch{suffix}"
    small = ("--rounds", "200", "--frames", "4", "--nodes", "8", "--arms", "6", "--rank", "2")
    done = call("watch", "--kind", kind, "--out", str(out), *small)
    assert done.exit_code == 0, done.output
    assert "round 200: regret" in done.output
    start = {".html": b"<!DOCTYPE html>", ".gif": b"GIF89a", ".png": PNG}[suffix]
    assert out.read_bytes().startswith(start)
    if suffix == ".gif":
        from PIL import Image

        assert Image.open(out).n_frames >= 3  # type: ignore[attr-defined]


def test_costs_are_watched_as_costs() -> None:
    env = sb.minimize(random_list(10, 3, seed=4))
    policy = sb.minimize(sb.CUCB(env.matroid, exploration=0.3))
    recording = record(policy, env, rounds=400, frames=10)
    shown = recording.shown()
    assert shown[:3] == np.argsort(env.means, kind="stable")[:3].tolist(), "the cheapest first"
    late = recording.last
    index = [np.inf if one is None else one for one in late.index]
    assert sorted(np.argsort(index, kind="stable")[:3].tolist()) == late.arms, "the lowest index is played"
    assert Page(list_page(recording)).open == []


def test_a_long_list_is_cut_to_the_best_and_the_most_tried() -> None:
    env = random_list(150, 4, seed=1)
    recording = record(sb.CUCB(env.matroid, exploration=0.1), env, rounds=600, frames=5)
    shown = recording.shown()
    assert len(shown) == 60 and set(recording.best) <= set(shown)
    counts = np.array(recording.last.counts)
    left_out = np.setdiff1d(np.arange(150), shown)
    assert counts[left_out].max() <= np.delete(counts[shown], range(4)).min()
    text = list_page(recording)
    assert "60 of 150 arms" in text and text.count('class="row"') == 60


@pytest.mark.parametrize(
    ("dataset", "kind", "package"),
    [("isp:network=sndlib/germany50", "network", "topohub"), ("movies", "list", "bokeh_sampledata")],
)
def test_real_data_can_be_watched(tmp_path: Path, dataset: str, kind: str, package: str) -> None:
    pytest.importorskip(package)
    out = tmp_path / "watch.html"
    done = call(
        "watch", "--kind", kind, "--dataset", dataset, "--rounds", "60", "--frames", "5", "--out", str(out)
    )
    assert done.exit_code == 0, done.output
    assert Page(out.read_text(encoding="utf-8")).open == []


def test_data_sets_that_do_not_fit() -> None:
    pytest.importorskip("bokeh_sampledata")
    for dataset, says in (
        ("movies", "not a network"),
        ("moon", "is not known"),
        ("movies:kind", "OPTION=VALUE"),
    ):
        done = call("watch", "--dataset", dataset)
        assert done.exit_code == 2 and says in done.output, done.output
