"""Catalogs in files: what comes back, what is refused, and what is there after kill -9."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import FileError, ParameterError
from semibandit.policies.files import MAGIC, _parse, _write


@pytest.mark.parametrize("label", [frozenset([1]), b"x", (1, b"x"), Fraction(1, 2), math.inf, object()])
def test_labels_that_no_file_can_hold(label, tmp_path):
    page = sb.Catalog.uniform(1)
    page.add(label)
    assert page.decide().labels == [label]
    with pytest.raises(ParameterError, match="has no place in a file"):
        page.save(tmp_path / "page")
    assert not list(tmp_path.iterdir())


def test_numpy_labels_come_back_as_equal_ones(tmp_path):
    page = sb.Catalog.uniform(2)
    for label in (np.int64(7), np.str_("x"), (np.float64(0.5), True)):
        page.add(label)
    page.save(tmp_path / "page")
    assert set(sb.Catalog.load(tmp_path / "page")) == {7, "x", (0.5, True)}


@pytest.mark.parametrize("metadata", [{1, 2}, {"a": math.nan}, object()])
def test_metadata_that_json_cannot_hold(metadata, tmp_path):
    with pytest.raises(ParameterError, match="metadata"):
        sb.Catalog.uniform(1, metadata=metadata).save(tmp_path / "page")
    assert not list(tmp_path.iterdir())


def test_damaged_and_foreign_files_are_refused(tmp_path):
    page = sb.Catalog.partition({"news": 1, "sport": 1})
    page.add("vote", "news")
    path = tmp_path / "page"
    page.save(path)
    raw = path.read_bytes()
    for at in range(0, len(raw), max(1, len(raw) // 60)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(FileError):
            sb.Catalog.load(path)
    path.write_bytes(MAGIC)
    with pytest.raises(FileError):
        sb.Catalog.load(path)
    with pytest.raises(FileError, match="cannot be read"):
        sb.Catalog.load(tmp_path / "nowhere")
    sb.CUCB(sb.Uniform(2, 1)).save(path)
    with pytest.raises(FileError, match=r"semibandit\.load reads it"):
        sb.Catalog.load(path)
    page.save(path)
    with pytest.raises(FileError, match=r"semibandit\.Catalog\.load"):
        sb.load(path)


def test_files_that_contradict_themselves_are_refused(tmp_path):
    page = sb.Catalog.partition({"news": 1, "sport": 1})
    page.add("vote", "news")
    page.add("derby", "sport")
    path = tmp_path / "page"

    def lie(change):
        page.save(path)
        about, arrays = _parse(path.read_bytes(), path)
        change(about["catalog"], arrays)
        _write(path, about, arrays)
        with pytest.raises(FileError):
            sb.Catalog.load(path)

    def put(part, name, value):
        part[name] = value

    def write(array, value):
        array[...] = value

    lie(lambda told, arrays: put(told, "labels", ["vote", "vote"]))
    lie(lambda told, arrays: put(told, "labels", ["vote"]))
    lie(lambda told, arrays: put(told, "labels", ["vote", ["x"]]))
    lie(lambda told, arrays: put(told, "kind", "linear"))
    lie(lambda told, arrays: put(told, "types", ["sport", "news"]))
    lie(lambda told, arrays: put(told, "dropped", -1))
    lie(lambda told, arrays: told.pop("forgotten"))
    lie(lambda told, arrays: put(told["about"], "quotas", [["news", 1], ["sport", 2]]))
    lie(lambda told, arrays: write(arrays["arms"], 0))
    lie(lambda told, arrays: write(arrays["arms"], [0, 10**6]))
    lie(lambda told, arrays: write(arrays["arms"], arrays["arms"] + 1))
    lie(lambda told, arrays: write(arrays["types"], 0))
    lie(lambda told, arrays: write(arrays["types"], 7))
    lie(lambda told, arrays: write(arrays["policy"][:100], 0))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_after_kill_9_the_last_file_is_whole(tmp_path):
    path = tmp_path / "page"
    program = """
    import sys, semibandit as sb
    page = sb.Catalog.partition({"news": 2, "sport": 1}, metadata={"round": 0})
    for i in range(300):
        page.add(f"item {i}", ("news", "sport")[i % 2])
    for t in range(10**6):
        shown = page.decide()
        page.learn(shown, [0.5] * len(shown))
        page.expire(shown[0])
        page.add(f"new {t}", "news" if t % 2 else "sport")
        page.metadata["round"] = t
        page.save(sys.argv[1])
        if t == 20:
            print("go", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None and process.stdout.readline() == b"go\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    page = sb.Catalog.load(path)
    assert page.metadata["round"] >= 20 and len(page) == 300
    page._check()
    assert len(page.decide()) == 3
