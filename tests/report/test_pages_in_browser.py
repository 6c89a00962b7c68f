"""The HTML pages in a real browser: no errors, no requests, nothing wider than the window, and buttons that work.

Set SEMIBANDIT_PICTURES to a folder to keep the screenshots.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from semibandit.cli.main import main
from semibandit.experiments import parse_experiment, run_experiment
from semibandit.report import load_sweep, report_html
from support.browser import Browser, find_browser

pytest.importorskip("polars")
PATH = find_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PATH is None, reason="no Chromium found: install one, or set SEMIBANDIT_CHROMIUM"),
]

TEXT = """
[experiment]
name = "browser-trial"
rounds = 20000
repeats = 6

[[instance]]
matroid = "uniform"
arms = 200
rank = 5

[[instance]]
label = "a spanning tree among 120 links of 30 nodes, <b>gaussian</b> noise & all"
matroid = "graphic"
arms = 120
rank = 29
environment = "gaussian"

[[policy]]
name = "cucb"

[[policy]]
name = "cucb"
exploration = 0.3

[[policy]]
name = "cucb"
label = "a policy with quite a long label, to see how that reads"
clock = "staircase"
step = 0.1

[[policy]]
name = "cucb"
label = "timid"
exploration = 5.0
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    run_experiment(parse_experiment(TEXT), folder / "trial")
    (folder / "report.html").write_text(report_html(load_sweep(folder / "trial")), encoding="utf-8")
    for kind in ("network", "list"):
        out = str(folder / f"{kind}.html")
        assert CliRunner().invoke(main, ["watch", "--kind", kind, "--out", out]).exit_code == 0
    return {name: folder / f"{name}.html" for name in ("report", "network", "list")}


@pytest.fixture
def browser() -> Iterator[Browser]:
    assert PATH is not None
    with Browser(PATH) as one:
        yield one


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["report", "network", "list"])
def test_a_page_reads_well(
    pages: dict[str, Path], browser: Browser, tmp_path: Path, name: str, width: int, dark: bool
) -> None:
    browser.open(pages[name], width, dark=dark, fragment="" if name == "report" else "#25")
    assert browser.complaints == []
    assert [one for one in browser.requests if not one.startswith(("file:", "about:", "data:"))] == []
    assert browser.run("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    smallest = browser.run(
        "Math.min(...[...document.querySelectorAll('svg text')].filter(t => t.getClientRects().length)"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))"
    )
    assert smallest >= 9, f"text of {smallest} pixels"
    keep = Path(os.environ.get("SEMIBANDIT_PICTURES", tmp_path))
    keep.mkdir(parents=True, exist_ok=True)
    picture = keep / f"{name}-{width}-{'dark' if dark else 'light'}.png"
    browser.picture(picture)
    assert picture.stat().st_size > 10_000


def test_the_scales_of_the_report_can_be_changed(pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["report"], 1280)
    shown = "[...document.querySelectorAll('.scaled')].filter(c => c.getClientRects().length).map(c => c.classList[2])"
    for scale in ("log", "linear", "semi"):
        browser.run(f"document.querySelector('button[data-scale={scale}]').click()")
        assert browser.run(shown) == [scale, scale], "one figure an instance"
    browser.open(pages["report"], 400)
    assert browser.run(shown) == ["linear", "linear"]
    assert browser.complaints == []


@pytest.mark.parametrize("name", ["network", "list"])
def test_the_slider_and_the_button_work(pages: dict[str, Path], browser: Browser, name: str) -> None:
    browser.open(pages[name], 1280)
    caption = "document.getElementById('caption').textContent"
    assert str(browser.run(caption)).startswith("round 1: regret")
    browser.run(
        "const s = document.getElementById('at'); s.value = s.max; s.dispatchEvent(new Event('input'))"
    )
    assert "0,000: regret" in str(browser.run(caption))
    assert browser.run("document.querySelectorAll('.played').length") in (5, 29)
    browser.run("document.getElementById('play').click()")
    assert browser.run("document.getElementById('play').textContent") == "Pause"
    browser.run("document.getElementById('play').click()")
    assert browser.run("document.getElementById('play').textContent") == "Play"
    assert browser.complaints == []
