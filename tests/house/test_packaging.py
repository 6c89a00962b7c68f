"""What stands in several places says the same everywhere: version, licence, home, extras."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import semibandit
from semibandit.text import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = "https://github.com/semibandit/semibandit"


def test_the_version_is_one() -> None:
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    changes = re.search(r"^## (\d\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert cited is not None and changes is not None
    assert PROJECT["version"] == semibandit.__version__ == cited.group(1) == changes.group(1)


def test_the_licence_is_an_expression_and_its_file_is_there() -> None:
    assert PROJECT["license"] == "MIT" and (ROOT / PROJECT["license-files"][0]).is_file()
    assert not [one for one in PROJECT["classifiers"] if one.startswith("License ::")]
    assert "\nlicense: MIT\n" in (ROOT / "CITATION.cff").read_text()


def test_addresses_are_at_home() -> None:
    assert {"Homepage", "Source", "Issues", "Changelog"} <= set(PROJECT["urls"])
    for url in PROJECT["urls"].values():
        assert url.startswith(HOME)
    for name in ("CITATION.cff", "SECURITY.md", "README.md"):
        for url in re.findall(r"https://github\.com/[\w./-]+", (ROOT / name).read_text(encoding="utf-8")):
            assert url.startswith(HOME), f"{name}: {url}"


def test_the_citation_can_be_read() -> None:
    yaml = pytest.importorskip("yaml")
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert told["cff-version"] == "1.2.0" and told["authors"] == [{"name": "semibandit developers"}]
    (paper,) = told["references"]
    assert paper["title"] == "Matroid Semi-Bandits in Sublinear Time" and paper["year"] == 2024
    assert [one["family-names"] for one in paper["authors"]] == ["Tzeng", "Ohsaka", "Ariu"]


def test_every_optional_package_is_in_the_extra_that_is_named_for_it() -> None:
    extras = PROJECT["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(re.match(rf"{package}\b", one) for one in extras[extra]), f"{package} is not in [{extra}]"
    (everything,) = extras["all"]
    # A cluster is not for everybody, and Ray is larger than all the rest.
    assert set(re.findall(r"\w+", everything)) - {"semibandit"} == set(EXTRAS.values()) - {"ray"}


def test_what_the_source_package_holds_is_there() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    for name in tool["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name
