"""The page of the service in a real browser: numbers move while a client plays, in both schemes, on a phone too.

Set SEMIBANDIT_PICTURES to a folder to keep the screenshots.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from pathlib import Path

import httpx
import pytest

from semibandit.serve.tokens import new_token
from support.browser import Browser, find_browser
from support.service import Server

PATH = find_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PATH is None,
        reason="no Chromium found: install one (Debian: apt-get install chromium), or set SEMIBANDIT_CHROMIUM",
    ),
]

# A label that would be code if the page took it for any.
EVIL = "<img src=x onerror=alert(1)>"
FILE = f"""
[policies.home]
policy = "cts"
matroid = {{ kind = "uniform", arms = 60, rank = 8 }}

[policies.news]
policy = "cucb"
ttl = 2
catalog = {{ kind = "partition", quotas = {{ news = 1, sport = 2 }}, labels = [
  ["budget", "news"], ["election night: the long count, and what it may mean", "news"],
  ["derby", "sport"], ["final", "sport"], ["{EVIL}", "sport"]] }}

[policies.idle]
objective = "min"
matroid = {{ kind = "uniform", arms = 1000000, rank = 10 }}
"""


class Playing(threading.Thread):
    """A client that decides and learns until it is told to stop; `done` decisions so far."""

    def __init__(self, address, policy, lost=0.0, seed=0):
        super().__init__(daemon=True)
        self.address, self.policy, self.lost, self.done = address, policy, lost, 0
        self._rng, self._over, self.error = random.Random(seed), threading.Event(), None
        self.start()

    def run(self):
        rng, chance = self._rng, {}
        try:
            with httpx.Client(base_url=f"{self.address}/v1/policies/{self.policy}", timeout=60) as http:
                while not self._over.wait(0.02):
                    made = http.post("/select", json={}).raise_for_status().json()
                    self.done += 1
                    if rng.random() < self.lost:
                        continue
                    values = [
                        float(rng.random() < chance.setdefault(str(arm), rng.betavariate(2, 3)))
                        for arm in made["arms"]
                    ]
                    told = {"decision": made["decision"], "rewards": values}
                    answer = http.post("/rewards", json=told)
                    assert answer.status_code in (200, 410), answer.text  # a slow machine may be too late
        except Exception as error:
            self.error = error

    def stop(self):
        self._over.set()
        self.join(60)
        assert self.error is None, self.error


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "service.toml").write_text(FILE)
    with Server(folder / "state", folder / "service.toml") as one:
        players = [Playing(one.address, "home", 0.02, 1), Playing(one.address, "news", 0.3, 2)]
        yield one
        for player in players:
            player.stop()


@pytest.fixture
def browser():
    with Browser(PATH) as one:
        yield one


def keep(browser, tmp_path, name):
    folder = Path(os.environ.get("SEMIBANDIT_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    browser.picture(folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size > 5_000


def text(browser, name):
    return browser.run(f"document.getElementById('{name}').textContent")


def number(browser, name):
    return float(text(browser, name).split()[0].replace(",", ""))


SERVING = "document.body?.dataset.state === 'serving' && document.getElementById('all')?.hidden === false"

# The least contrast of any text that is seen, by the rule of WCAG 2 (backgrounds here are never transparent on top
# of pictures).
CONTRAST = """
(() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const one = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => one(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  let least = [99, ""];
  for (const e of document.querySelectorAll("main *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.tagName === "NOSCRIPT") continue;
    const style = getComputedStyle(e), svg = e.namespaceURI.endsWith("svg");
    const a = light(parse(svg ? style.fill : style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 120)];
  }
  return least;
})()
"""
SMALLEST = """
Math.min(...[...document.querySelectorAll("main *")].filter(e => e.getClientRects().length &&
  [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
  .map(e => parseFloat(getComputedStyle(e).fontSize)))
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("policy", ["home", "news", "idle"])
def test_the_page_reads_well(server, browser, tmp_path, policy, width, dark):
    browser.visit(f"{server.address}/#{policy}", width, dark=dark)
    browser.until(SERVING)
    if policy != "idle":
        browser.until("document.querySelectorAll('#base tr, #course .l').length > 4")
    assert browser.complaints == []
    assert [one for one in browser.requests if not one.startswith((server.address, "about:", "data:"))] == []
    assert browser.run("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    ratio, where = browser.run(CONTRAST)
    assert ratio >= 4.5, (ratio, where)
    assert browser.run(SMALLEST) >= 12
    unnamed = "filter(e => !e.labels?.length && !e.textContent.trim()).length"
    assert browser.run(f"[...document.querySelectorAll('input, select, button')].{unnamed}") == 0
    keep(browser, tmp_path, f"service-{policy}-{width}-{'dark' if dark else 'light'}")


def test_numbers_move_while_a_client_plays(server, browser):
    browser.visit(f"{server.address}/#home", 1280)
    browser.until(SERVING)
    browser.until("document.getElementById('mean').textContent > '0'")
    before = number(browser, "decisions-sub"), number(browser, "rewards-sub")
    chart = browser.run("document.querySelector('#course .l').getAttribute('d')")
    assert 0.0 < number(browser, "mean") < 1.0
    time.sleep(2.5)
    after = number(browser, "decisions-sub"), number(browser, "rewards-sub")
    assert after[0] > before[0] and after[1] > before[1]
    assert number(browser, "decisions") > 0 and number(browser, "rewards") > number(browser, "decisions")
    assert browser.run("document.querySelector('#course .l').getAttribute('d')") != chart
    for name in ("decisions", "rewards", "pending", "latency"):
        assert browser.run(f"document.querySelectorAll('#s-{name} path').length") == 2
    assert browser.run("document.querySelectorAll('#base tr').length") == 1 + 8
    assert "s" in text(browser, "latency") and "half within" in text(browser, "latency-sub")
    about = httpx.get(f"{server.address}/v1/policies/home").json()["about"]
    inside = text(browser, "inside")
    assert about["engine"] in inside and about["why"] in inside and about["policy"] in inside
    shown = number(browser, "decisions-sub")
    real = httpx.get(f"{server.address}/v1/policies/home").json()["round"]
    assert shown <= real < shown + 1000
    assert browser.complaints == []


def test_late_feedback_and_labels_are_shown(server, browser):
    browser.visit(f"{server.address}/#news", 400)
    browser.until("document.getElementById('pending-sub').textContent.includes('expired')")
    browser.until(f"document.querySelector('.arms').textContent.includes({EVIL!r})")
    assert browser.run("document.images.length") == 0, "a label is text"
    assert browser.run("document.querySelectorAll('#base tr').length") == 1 + 3
    assert browser.complaints == []


def test_a_policy_is_chosen_with_the_keyboard(server, browser):
    browser.visit(server.address + "/", 1280)
    browser.until(SERVING)
    assert text(browser, "name") == "home"
    options = "[...document.getElementById('policy').options].map(o => o.value)"
    assert browser.run(options) == ["home", "news", "idle"]
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.id") == "policy"
    browser.press("ArrowDown", 40)
    browser.until("document.getElementById('name').textContent === 'news'")
    assert browser.run("location.hash") == "#news"
    browser.run("document.activeElement.blur(); history.back()")
    browser.until("document.getElementById('name').textContent === 'home'")
    assert browser.run("document.getElementById('policy').value") == "home"
    browser.run("location.hash = '#nobody'")
    browser.until("document.getElementById('status').textContent === 'policy nobody is not here'")
    assert browser.run("document.getElementById('all').hidden")
    browser.run("location.hash = '#idle'")
    browser.until(
        "document.getElementById('summary').textContent.startsWith('Waiting for the first decision')"
    )
    assert browser.complaints == []


def test_a_token_is_asked_for_once(tmp_path, browser):
    token, line = new_token("read")
    (tmp_path / "tokens").write_text(line + "\n")
    with Server(tmp_path / "state", "--arms", 30, "--rank", 3, "--tokens", tmp_path / "tokens") as server:
        browser.visit(server.address + "/", 400)
        door = "document.getElementById('door')?.hidden === false"
        browser.until(door)
        assert browser.run("document.activeElement.id") == "token"
        keep(browser, tmp_path, "service-token-400-light")
        browser.call("Input.insertText", text="wrong")
        browser.press("Enter", 13, "\r")
        browser.until("document.getElementById('why').textContent.startsWith('This token is not known here')")
        browser.call("Input.insertText", text=token)
        browser.press("Enter", 13, "\r")
        browser.until(SERVING)
        browser.run("window.old = true")
        browser.call("Page.reload")
        browser.until(f"!window.old && {SERVING}")
        assert not browser.run(door), "kept in this tab"
        assert not any(token in one for one in browser.requests), "never in an address"
        assert browser.run("localStorage.length") == 0 and token not in browser.run("document.cookie")
        browser.run("document.getElementById('forget').click()")
        browser.until(door)
        refused = [one for one in browser.complaints if "401" not in one]
        assert refused == []


def test_a_server_that_is_gone_and_back(tmp_path, browser):
    with Server(tmp_path, "--arms", 30, "--rank", 3) as server:
        port = int(server.address.rsplit(":", 1)[1])
        browser.visit(server.address + "/", 1280, dark=True)
        browser.until(SERVING)
        assert server.stop() == 0
    browser.until("document.getElementById('status').textContent.includes('trying again')")
    keep(browser, tmp_path, "service-lost-1280-dark")
    with contextlib.ExitStack() as stack:
        stack.enter_context(Server(tmp_path, "--arms", 30, "--rank", 3, port=port))
        browser.until(SERVING, 60)
