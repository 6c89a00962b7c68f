"""Every example in the documentation runs, every link leads somewhere, and the site builds without warnings.

In a Markdown file, the ``python`` blocks run in order in one namespace. What a block prints must be what its
``# ->`` comments say, so the answers shown to a reader are the true ones. Docstrings are run as doctests.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import semibandit
from semibandit.engines.registry import ENGINES
from semibandit.matroids import codec
from semibandit.policies import catalogue

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "semibandit"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROUNDS = re.compile(r"rounds=(\d[\d_]*_000)\b")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line number of the first line, code) of each python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)) + 1, found.group(1)) for found in _FENCE.finditer(text)]


#: Modules whose examples ask the compiler for dozens of kernels: engines by themselves, which no policy plays that way.
COMPILING = (
    "semibandit.engines.transversal.engine",
    "semibandit.engines.layers.hot_cold",
    "semibandit.paper.dynamic.graphic",
)


def modules_with_examples() -> list[str]:
    names = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__main__.py" and ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@pytest.fixture
def same_engines() -> Iterator[None]:
    """Examples may register engines, policies and matroids; other tests of this process must not meet them."""
    for (
        name
    ) in codec.names():  # a module that is imported only now would register its class, and lose it again
        codec.row(name)
    _ = list(catalogue.POLICIES)
    tables = (catalogue._entries, codec._rows)
    engines, others = dict(ENGINES), [dict(table) for table in tables]
    yield
    ENGINES.clear()
    ENGINES.update(engines)
    for table, before in zip(tables, others, strict=True):
        table.clear()
        table.update(before)
    vars(semibandit).pop("SlowClock", None)


def run_blocks(page: Path, shorten: bool = False) -> None:
    """Run a page's blocks. `shorten`: a twentieth of the rounds, and what such a block prints is not looked at."""
    namespace: dict[str, object] = {"__name__": "example"}
    for line, text in blocks(page):
        code = _ROUNDS.sub(lambda found: f"rounds={int(found[1]) // 20}", text) if shorten else text
        said = [one[4:].strip() for one in map(str.strip, code.splitlines()) if one.startswith("# ->")]
        printed = io.StringIO()
        # Newlines in front make tracebacks point into the page.
        program = compile("\n" * (line - 1) + code, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        where = f"{page.name}, block at line {line}"
        assert code != text or [one.strip() for one in printed.getvalue().splitlines()] == said, where


#: Pages that take long: all of their code by the fast tests, all that it prints by the slow ones.
LONG = ("README.md",)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in LONG else [])
        for page in PAGES
        if blocks(page)
    ],
    ids=lambda page: page.name,
)
def test_examples_of_a_page_run_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_engines: None
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.parametrize("name", LONG)
def test_long_examples_run_with_fewer_rounds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_engines: None
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(ROOT / name, shorten=True)


def test_the_pages_that_promise_examples_have_them() -> None:
    for name in ("README", "CONTRIBUTING", "docs/getting-started", "docs/matroids", "docs/recipes"):
        assert blocks(ROOT / f"{name}.md"), f"no python block found in {name}.md"


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in COMPILING)) for x in modules_with_examples()]
)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_files(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        assert (page.parent / target.split("#")[0]).exists(), f"{page.name} links to {target}"


def test_the_reference_lists_what_is_exported_and_nothing_else() -> None:
    table = re.search(
        r"^\| kind .*?\n\n", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.M | re.S
    )
    assert table is not None
    listed = re.findall(r"`(\w+)`", table.group())
    assert set(semibandit.__all__) - {"__version__"} <= set(listed)
    for name in listed:
        assert name in semibandit.__all__ or (PACKAGE / f"{name}.py").exists(), f"no semibandit.{name}"


def test_the_table_of_engines_is_that_of_the_registry() -> None:
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    text = text[text.index("## Engines") : text.index("## Clocks")]
    rows = dict(re.findall(r'^\| `"([\w-]+)"` \| ([^|]+) \|', text, re.M))
    assert {name: sorted(served.split(", ")) for name, served in rows.items()} == {
        name: sorted(spec.serves) or ["every matroid"] for name, spec in ENGINES.items()
    }


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "html")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "html"
    assert (site / "api.html").exists()
    for name in semibandit.__all__:
        home = getattr(getattr(semibandit, name), "__module__", "")
        if home.split(".")[1:2] in (["matroids"], ["environments"], ["simulation"]):
            room = ".".join(home.split(".")[:2])
            assert (site / "reference" / f"{room}.{name}.html").exists(), f"no page of {name}"
    theory = (site / "theory.html").read_text(encoding="utf-8")
    assert theory.count("<math") > 500 and "\\lambda" not in re.sub(r"<[^>]*>", "", theory)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"", text)
        assert not loaded, f"{page.name} loads {loaded[0]}"


def test_words_that_people_search_for_lead_somewhere() -> None:
    text = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8").lower()
    headings = " ".join(re.findall(r"^## (.*)$", text, re.M))
    for word in ("delayed", "contextual", "click", "slate", "cold start", "prior", "pandas"):
        assert word in headings, word
    terms = re.findall(r"^(\S.*)\n  ", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)
    words = {"K", "D", "lam", "clock", "staircase", "loop", "base", "arm", "engine", "policy"}
    assert words <= set(terms) and terms == sorted(terms, key=str.lower)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "docs" in page.parts[-2:]], ids=lambda page: page.name
)
def test_links_to_a_place_on_a_page_lead_there(page: Path) -> None:
    def slug(heading: str) -> str:
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        return plain.replace(" ", "-")

    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        name, _, place = target.partition("#")
        if place and "://" not in target and name.endswith(".md"):
            headings = re.findall(r"^#+ (.*)$", (page.parent / name).read_text(encoding="utf-8"), re.M)
            assert place in map(slug, headings), f"{page.name} links to {target}"
