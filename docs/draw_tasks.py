"""Draw the pictures of docs/tasks.md, by running its programs.

    python docs/draw_tasks.py

The page of news runs at full size (200,000 items, 90,000 pages), is killed by signal 9 in the middle, and goes on from
its file; beside it the theorem's constant and random pages. Fixed seeds; some minutes.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).resolve().parent
KILLED, LAST = 330, 600
PRACTICAL = 'prior=prior, exploration="practical"'


def blocks() -> list[str]:
    """The programs of the page."""
    return re.findall(r"^```python\n(.*?)^```$", (HERE / "tasks.md").read_text("utf-8"), re.M | re.S)


def best_page(site: Any, page: Any) -> float:
    """What the best page that quotas allow would earn."""
    left: dict[int, int] = {}
    rates: list[float] = []
    for label in sorted(page, key=lambda label: -site.rate[label]):
        category = page.attribute(label)
        if left.setdefault(category, 3):
            left[category] -= 1
            rates.append(site.rate[label])
            if len(rates) == 20:
                break
    return sum(rates)


def play_news(first: int, practical: bool) -> None:
    """Minutes `first` to the last of the news page, in the current folder, with a line of account for each."""
    world, recipe = blocks()[:2]
    world = re.sub(
        r"^ITEMS, MINUTES, PAGES = .*$", f"ITEMS, MINUTES, PAGES = 200_000, {LAST}, 150", world, flags=re.M
    )
    recipe = recipe.replace("range(MINUTES)", f"range({first}, MINUTES)")
    recipe = recipe.replace(
        "    page.save(file)", "    note(minute)" if not practical else "    page.save(file); note(minute)"
    )
    if not practical:
        recipe = recipe.replace(PRACTICAL, 'exploration="theorem"')
    space: dict[str, Any] = {}
    exec(world, space)
    site = space["site"]
    show, best = site.show, [0.0]
    if first:  # the world goes on where it was
        vars(site).update(pickle.loads(Path("site.pickle").read_bytes()))

    def show_or_die(decision: Any) -> Any:
        if practical and not first and len(site.earned) == KILLED * 150 + 75:
            os.kill(os.getpid(), signal.SIGKILL)
        return show(decision)

    def note(minute: int) -> None:
        if minute % 60 == 0:
            best[0] = best_page(site, space["page"])
        anyone = 20 * float(np.mean(list(site.rate.values()))) if minute % 60 == 0 else 0.0
        with open("account.csv", "a") as file:
            file.write(f"{minute},{np.mean(site.earned[-150:])},{best[0]},{anyone}\n")
        if practical and minute == KILLED - 1:
            Path("site.pickle").write_bytes(
                pickle.dumps({k: v for k, v in vars(site).items() if k != "show"})
            )

    space["note"] = note
    site.show = show_or_die
    exec(recipe, space)


def run_news(practical: bool) -> np.ndarray[Any, Any]:
    """The account of a whole run, in processes of its own, one of which is killed."""
    with tempfile.TemporaryDirectory() as folder:
        for first in (0, KILLED) if practical else (0,):
            program = f"import draw_tasks; draw_tasks.play_news({first}, {practical})"
            path = os.pathsep.join([str(HERE), *sys.path])
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                check=False,
            )
            assert done.returncode == (-signal.SIGKILL if practical and not first else 0), done
        return np.loadtxt(Path(folder) / "account.csv", delimiter=",")


def draw_news() -> None:
    """Clicks per page over ten hours."""
    ours, theirs = run_news(True), run_news(False)
    figure, axes = plt.subplots(figsize=(8.0, 4.4), dpi=150, layout="constrained")
    hours = ours[:, 0] / 60
    best = ours[np.maximum(0, (ours[:, 0] // 60 * 60).astype(int)), 2]
    for account, color in ((theirs, "#7a7a7a"), (ours, "#0b6e4f")):
        smooth = account[: len(account) // 5 * 5, 1].reshape(-1, 5).mean(axis=1)
        axes.plot((np.arange(len(smooth)) + 0.5) / 12, smooth, color=color, lw=2)
    axes.plot(hours, best, color="#444444", lw=1, ls=":")
    anyone = float(np.mean(ours[ours[:, 3] > 0, 3]))
    axes.axhline(anyone, color="#444444", lw=1, ls=":")
    axes.axvline(KILLED / 60, color="#b03a2e", lw=1)
    axes.text(
        KILLED / 60 + 0.05, 0.35 * best.max(), "kill -9,\nrestarted from\nthe last file", color="#b03a2e"
    )
    last = {"prior,\npractical": ours[-60:, 1].mean(), 'CUCB with\n"theorem"': theirs[-60:, 1].mean()}
    for (name, level), color in zip(last.items(), ("#0b6e4f", "#7a7a7a"), strict=True):
        axes.annotate(
            name,
            (10, level),
            (6, 10),
            textcoords="offset points",
            va="center",
            color=color,
            annotation_clip=False,
        )
    axes.annotate(
        "best\npossible",
        (10, best[-1]),
        (6, 0),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
    )
    axes.annotate(
        "random", (10, anyone), (6, -8), textcoords="offset points", va="center", annotation_clip=False
    )
    axes.set(
        xlim=(0, 10),
        ylim=(0, None),
        xlabel="hours; each has 9,000 pages, and a tenth of the items new",
        ylabel="clicks per page",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("200,000 items, clicks known 50 pages late", loc="left")
    figure.savefig(HERE / "task-news.png")
    print(f"last hour: {last}, best {best[-1]:.2f}, random {anyone:.2f}")


def draw_others() -> None:
    """The pictures that the other programs write themselves."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        space: dict[str, Any] = {}
        for code in blocks():
            exec(code, space)
        for made, kept in (("tree.png", "task-tree.png"), ("rules.png", "task-rules.png")):
            shutil.copy(made, HERE / kept)


if __name__ == "__main__":
    draw_others()
    draw_news()
