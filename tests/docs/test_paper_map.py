"""docs/paper-map.md names every item of the paper, and only files, functions and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "semibandit"
TEXT = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")

# The labels of the paper's algorithms, assumptions, equations, statements, tables and figures.
LABELS = [
    "alg:greedy",
    "alg:dynamic:init",
    "alg:dynamic:base",
    "alg:dynamic:update",
    "alg:dynamic:hitting-set",
    "alg:faster-cucb",
    "ass:lm",
    "asm:dynamic:bounds",
    "asm:dynamic:algorithm",
    "eq:combucb",
    "eq:dynamic:R",
    "eq:dynamic:bin",
    "eq:dynamic:dom",
    "eq:dynamic:approx",
    "eq:dynamic:linear-system",
    "eq:regret-e0",
    "eq:regret-e01",
    "eq:regret-part2-sketch-e0",
    "eq:regret-part2-sketch-e1",
    "eq:regret-part2-e1",
    "eq:regret-anytime-part1-0",
    "eq:regret-anytime-part1-1",
    "eq:regret-anytime-part1-2",
    "thm:dynamic",
    "thm:regret-noanytime",
    "cor:dynamic:covering-new",
    "lem:dynamic:approx",
    "lem:dynamic:unique-base",
    "lem:dynamic:covering",
    "lem:dynamic:hyperplane-arrangement",
    "lem:gt-property",
    "lem:gt-exist",
    "lem:regret-T0",
    "lem:regret-anytime-part1",
    "lem:regret-part2",
    "lem:hoeffding",
    "tab:per-round-time",
    "tab:regret_table",
    "fig:rounding",
    "fig:representable",
]

_NAMED = re.compile(r"`([\w./*-]+\.(?:py|md))(?:::([\w.]+))?`")


def named() -> list[tuple[str, str]]:
    """(file, name in it or "") for everything the page points at, once each."""
    return sorted(set(_NAMED.findall(TEXT)))


def files(path: str) -> list[Path]:
    """Files that `path` stands for: of the package, unless it starts at the root of the project."""
    at_root = path.startswith(("tests/", "benchmarks/")) or path.endswith(".md")
    return sorted((ROOT if at_root else PACKAGE).glob(path))


@cache
def definitions(path: Path) -> frozenset[str]:
    """Functions and classes of a file, methods as Class.method."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize("label", LABELS)
def test_every_item_of_the_paper_is_on_the_map(label: str) -> None:
    assert f"`{label}`" in TEXT


@pytest.mark.parametrize("path, name", named(), ids=lambda part: part or "file")
def test_what_the_map_names_exists(path: str, name: str) -> None:
    assert files(path), f"{path} does not exist"
    if name:
        assert name in definitions(files(path)[0]), f"{path} has no {name}"


def test_the_map_is_read_at_all() -> None:
    assert len(named()) > 60


def test_slips_are_numbered_once_and_references_lead_to_them() -> None:
    table, slips = TEXT.split("(slips-and-departures)=")
    numbers = [int(n) for n in re.findall(r"^(\d+)\. \*\*", slips, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    for inside in re.findall(r" \[([\d, to]+)\]", table):
        assert {int(n) for n in re.findall(r"\d+", inside)} <= set(numbers), f"[{inside}]"
