"""The four tasks of docs/tasks.md: short, ending in something to look at, from other sources too, and after kill -9."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import semibandit as sb

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]


def programs(section: str) -> tuple[str, str]:
    """What stands for the world, and the recipe."""
    found = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    return found[0], found[1]


def run(*parts: str) -> tuple[dict[str, Any], str]:
    space: dict[str, Any] = {"__name__": "example"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for part in parts:
            exec(part, space)
    return space, printed.getvalue()


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Imports that the page makes once, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return (
        "from pathlib import Path\nimport numpy as np, semibandit as sb\nfrom semibandit.text import table\n"
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n"
    )


@pytest.mark.parametrize("section", SECTIONS, ids=[text.split("\n")[0] for text in SECTIONS])
def test_a_recipe_is_short_and_ends_in_a_table_or_a_picture(section):
    _, recipe = programs(section)
    lines = [line for line in recipe.splitlines() if line.strip() and not line.startswith("# ->")]
    assert len(lines) <= 15 and max(map(len, lines)) <= 110
    assert lines[-1].startswith(("print(", "figure.savefig(")) and "# -> " in recipe


def test_there_are_the_four_tasks():
    assert len(SECTIONS) == 4


def test_a_tree_from_networkx_is_the_tree_from_a_file(world):
    data, recipe = programs(SECTIONS[1])
    here, table = run(world, data, recipe)
    there, same = run(world, data, recipe.replace('from_edges("links.csv")', "from_networkx(graph)"))
    names = [{frozenset(link) for link in space["tree"]} for space in (here, there)]
    assert names[0] == names[1] and len(names[0]) == len(here["places"]) - 1
    cheapest = here["nx"].minimum_spanning_tree(
        here["nx"].Graph([(*link, {"weight": ms}) for link, ms in here["latency"].items()])
    )
    assert names[0] == {frozenset(link) for link in cheapest.edges}
    assert len(table.splitlines()) == len(same.splitlines()) == 12
    assert Path("tree.png").stat().st_size > 10_000


def test_workers_from_pandas_do_the_same(world):
    pytest.importorskip("pandas")
    data, recipe = programs(SECTIONS[2])
    frame = 'pd.DataFrame(can_do, columns=["worker", "task"])'
    pandas = re.sub(r"pl\.DataFrame\(.*?\"row\"\)", frame, recipe)
    assert pandas != recipe
    first, table = run(world, data, recipe)
    second, same = run(world, "import pandas as pd", data, pandas)
    assert table == same and first["does"] == second["does"]
    for worker, task in first["does"].items():
        assert task in first["skills"][worker].split()
    assert len(set(first["does"].values())) == len(first["does"]) == 5


def test_intervals_of_the_rules_hold_the_truth(world):
    space, _ = run(world, *programs(SECTIONS[3]))
    truth = {"any items": 1.05, "items 0, 6, 12": 0.6, "items 3, 9, 15": 1.8}
    for name, value in truth.items():
        assert space["found"][name].low <= value <= space["found"][name].high
    assert Path("rules.png").stat().st_size > 5_000


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_the_news_page_goes_on_after_kill_9(tmp_path):
    data, recipe = programs(SECTIONS[0])

    def start(seed, minutes):
        sizes = f"ITEMS, MINUTES, PAGES = 300, {minutes}, 30"
        program = re.sub(r"^ITEMS, MINUTES, PAGES = .*?$", sizes, data, flags=re.M).replace(
            "seed=0", f"seed={seed}"
        )
        told = recipe.replace(
            "    page.save(file)\n", "    page.save(file)\n    print('saved', flush=True)\n"
        )
        assert sizes in program and "print('saved'" in told
        return subprocess.Popen(
            [sys.executable, "-c", program + told],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )

    first = start(0, 10**6)
    assert first.stdout is not None
    for _ in range(4):
        assert first.stdout.readline() == "saved\n"
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    first.stdout.close()

    page = sb.Catalog.load(tmp_path / "news.semibandit")
    page._check()
    before = sum(row["count"] for row in page.rows())
    assert len(page) == 300 and page.waiting == 50 and before >= 20 * (4 * 30 - 50)
    number = page.policy._decisions.state()["ids"][0]
    page.learn(number, [0.0] * 20)  # a click that comes after the restart
    assert page.waiting == 49 and sum(row["count"] for row in page.rows()) == before + 20

    second = start(1, 3)
    told, _ = second.communicate(timeout=60)
    lines = told.splitlines()
    assert second.returncode == 0 and lines[:3] == ["saved"] * 3 and lines[3].split()[0] == "label"
    page = sb.Catalog.load(tmp_path / "news.semibandit")
    page._check()
    assert len(page) == 300 and page.waiting == 100, "50 pages of each life wait"
    assert any(str(label).startswith("item 1-") for label in page)
