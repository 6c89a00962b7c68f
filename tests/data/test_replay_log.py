"""Reading logs: every kind of source gives the same log, and every malformed row is told by its number."""

from __future__ import annotations

import builtins
import math

import numpy as np
import pytest

import semibandit as sb
from semibandit.data.replay import read_log
from semibandit.errors import FileError, MissingExtraError, ParameterError

MATROID = sb.Uniform(6, 2)
NAMES = ("round", "arm", "reward")
GOOD = [(1, 0, 0.5), (1, 3, 1.0), (2, 5, 0.0), (2, 1, 0.25)]

PAGES = {
    "page": [7, 3, 3, 7],
    "item": [0, 5, 1, 4],
    "click": [1.0, 0.0, 0.25, 0.5],
    "p": [0.5, 0.25, 0.125, 1.0],
    "q": [0.1, 0.2, 0.2, 0.1],
    "note": ["a", "b", "c", "d"],
}
MAPPING = {"round": "page", "arm": "item", "reward": "click", "propensity": "p", "base_propensity": "q"}


def columns(rows, names=NAMES):
    return {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(names)}


def csv_of(table, path, mark=","):
    rows = zip(*table.values(), strict=True)
    text = "\n".join(mark.join(map(str, row)) for row in [list(table), *rows])
    path.write_text(text + "\n", encoding="utf-8")
    return path


def arrays(table, path):
    return {name: np.array(cells) for name, cells in table.items()}


def pandas_frame(table, path):
    # An index of its own must not matter.
    return pytest.importorskip("pandas").DataFrame(table, index=[9, 8, 7, 6])


def polars_frame(table, path):
    return pytest.importorskip("polars").DataFrame(table)


def lazy_frame(table, path):
    return polars_frame(table, path).lazy()


def parquet(table, path):
    polars_frame(table, path).write_parquet(path / "log.parquet")
    return str(path / "log.parquet")


SOURCES = {
    "csv": lambda table, path: csv_of(table, path / "log.csv"),
    "semicolons": lambda table, path: csv_of(table, path / "log.csv", ";"),
    "tabs": lambda table, path: str(csv_of(table, path / "log.tsv", "\t")),
    "lists": lambda table, path: table,
    "arrays": arrays,
    "pandas": pandas_frame,
    "polars": polars_frame,
    "lazy": lazy_frame,
    "parquet": parquet,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_log(kind, tmp_path):
    log = read_log(SOURCES[kind](PAGES, tmp_path), MATROID, columns=MAPPING)
    assert log.rounds.tolist() == [3, 7] and log.starts.tolist() == [0, 2, 4]
    assert log.arms.tolist() == [1, 5, 0, 4] and log.rewards.tolist() == [0.25, 0.0, 1.0, 0.5]
    assert log.propensities.tolist() == [0.125, 0.25, 0.5, 1.0]
    assert log.base_propensities.tolist() == [0.2, 0.1]
    assert log.rows.tolist() == [3, 2, 1, 4] and log.skipped == [] and len(log) == 2
    assert "per arm and per base" in repr(log)


def test_columns_have_their_own_names_by_default():
    plain = {"round": [1, 1], "arm": [0, 1], "reward": [1, 0]}
    log = read_log(plain, MATROID)
    assert log.propensities is None and log.base_propensities is None and "none" in repr(log)
    assert read_log({**plain, "propensity": [0.5, 0.4]}, MATROID).propensities.tolist() == [0.5, 0.4]
    # The name of version 0.1, which must not be passed over.
    assert read_log({**plain, "probability": [0.5, 0.4]}, MATROID).propensities.tolist() == [0.5, 0.4]
    both = {**plain, "propensity": [0.5, 0.4], "probability": [0.1, 0.1]}
    assert read_log(both, MATROID).propensities.tolist() == [0.5, 0.4]


def test_rounds_may_have_names(tmp_path):
    table = {"round": ["b", "b", "a", "c"], "arm": [0, 1, 2, 3], "reward": [1, 0, 1, 0]}
    for source in (table, csv_of(table, tmp_path / "l.csv")):
        log = read_log(source, MATROID)
        assert log.rounds.tolist() == ["b", "a", "c"] and log.arms.tolist() == [0, 1, 2, 3]
    with pytest.raises(FileError, match="row 2: round is missing"):
        read_log({**table, "round": ["b", None, "a", "c"]}, MATROID)
    # A column that begins as numbers has numbers.
    with pytest.raises(FileError, match="row 3: round 'a' is not a whole number"):
        read_log({**table, "round": ["1", "1", "a", "2"]}, MATROID)


def test_cells_that_other_programs_write(tmp_path):
    (tmp_path / "l.csv").write_text(
        '\ufeffround,"arm",reward\r\n1, 0 ,1e0\r\n\r\n1,"3.0",0.5\r\n', encoding="utf-8"
    )
    log = read_log(tmp_path / "l.csv", MATROID)
    assert log.arms.tolist() == [0, 3] and log.rewards.tolist() == [1.0, 0.5]
    flags = {"round": [1, 1], "arm": np.array([0, 1], dtype=np.uint8), "reward": np.array([True, False])}
    assert read_log(flags, MATROID).rewards.tolist() == [1.0, 0.0]


BAD = {
    "arm is not one of 0 .. 5": (2, 6, 0.5),
    "arm is not one of 0": (2, -1, 0.5),
    "arm is missing": (2, None, 0.5),
    "arm 0.5 is not a whole number": (2, 0.5, 0.5),
    "arm 'x' is not a whole number": (2, "x", 0.5),
    "arm True is not a whole number": (2, True, 0.5),
    "round is missing": (None, 2, 0.5),
    "round 'x' is not a whole number": ("x", 2, 0.5),
    "reward is missing": (2, 2, None),
    "reward 'high' is not a number": (2, 2, "high"),
    "reward is not finite": (2, 2, math.inf),
    "reward is outside": (2, 2, 1.5),
    "arm occurs twice in its round": (2, 5, 0.5),
}


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("as_file", [False, True])
def test_malformed_rows_are_told_by_number_or_their_rounds_are_skipped(text, as_file, tmp_path):
    rows = [*GOOD[:2], GOOD[2], BAD[text]]
    place = "row 4"
    if as_file:
        cells = [["" if cell is None else cell for cell in row] for row in rows]
        source = csv_of(columns(cells), tmp_path / "l.csv")
        text, place = text.replace("arm 0.5", "arm '0.5'").replace("arm True", "arm 'True'"), "row 4 (line 5)"
    else:
        source = columns(rows)
    with pytest.raises(FileError) as caught:
        read_log(source, MATROID)
    assert f"{place}: {text}" in str(caught.value)
    log = read_log(source, MATROID, bad="skip")
    unplaced = text.startswith("round")
    assert log.arms.tolist() == ([0, 3, 5] if unplaced else [0, 3])
    told = dict(log.skipped)
    assert text in told[4] and set(told) == ({4} if unplaced else {3, 4})
    assert unplaced or told[3] == "another row of its round is malformed"


def test_missing_cells_of_frames():
    rows = {"round": [1, 1, 2], "arm": [0, None, 5], "reward": [0.5, 1.0, None]}
    for library in ("pandas", "polars"):
        frame = pytest.importorskip(library).DataFrame(rows)
        with pytest.raises(FileError, match=r"row 2: arm is missing; row 3: reward is missing\. Mend"):
            read_log(frame, MATROID)


def test_rounds_that_cannot_be_played_are_told():
    rows = [*GOOD, (3, 0, 0.1), (3, 1, 0.1), (3, 2, 0.1)]
    with pytest.raises(FileError, match="row 5: the 3 arms of round 3 are not independent in Uniform"):
        read_log(columns(rows), MATROID)
    log = read_log(columns(rows), MATROID, bad="skip")
    assert log.rounds.tolist() == [1, 2] and [row for row, _ in log.skipped] == [5, 6, 7]
    triangle = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)])
    with pytest.raises(FileError, match="row 1: the 3 arms of round 1 are not independent in Graphic"):
        read_log(columns([(1, arm, 0.5) for arm in (0, 1, 2)]), triangle)


def test_propensities_are_checked():
    names = (*NAMES, "propensity", "base_propensity")
    rows = [(1, 0, 0.5, 0.5, 0.1), (1, 3, 1.0, 0.5, 0.1), (2, 1, 0.0, 0.5, 0.2), (2, 2, 0.0, 0.5, 0.2)]
    assert read_log(columns(rows, names), MATROID).base_propensities.tolist() == [0.1, 0.2]
    for at, value, text in (
        (3, 0.0, r"propensity is not in \(0, 1\]"),
        (3, 1.01, r"propensity is not in \(0, 1\]"),
        (3, None, "propensity is missing"),
        (3, math.nan, "propensity is not finite"),
        (4, -0.1, r"base_propensity is not in \(0, 1\]"),
        (4, 0.3, "base_propensity differs within the round"),
    ):
        wrong = [list(row) for row in rows]
        wrong[3][at] = value
        with pytest.raises(FileError, match=f"row 4: {text}"):
            read_log(columns(wrong, names), MATROID)


def test_many_bad_rows_are_counted():
    with pytest.raises(FileError, match=r"row 9: .*; and 15 more"):
        read_log(columns([*GOOD, *((9, 9, 0.1) for _ in range(20))]), MATROID)


def test_text_files_that_are_none(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("round,arm,reward\n1,0,0.5\n1,3\n2,1,0.5,9,9\n")
    with pytest.raises(
        FileError, match=r"row 2 \(line 3\): it has 2 fields, the header has 3; row 3 \(line 4\): it has 5"
    ):
        read_log(path, MATROID)
    assert read_log(path, MATROID, bad="skip").arms.tolist() == [0]
    for text, told in (
        ("", "has no header"),
        ("round,arm,reward\n", "the log is empty"),
        ("round,arm,arm,reward\n1,0,0,1\n", "two columns 'arm'"),
        (
            "page,item,click\n1,0,1\n",
            "no column 'round'; it has page, item, click. Say which one it is: columns={'round'",
        ),
        ("round,arm,reward\n1,9,1\n", r"row 1 (line 2): arm is not one of"),
    ):
        path.write_text(text)
        with pytest.raises(FileError) as caught:
            read_log(path, MATROID)
        assert told in str(caught.value)
    with pytest.raises(FileError, match="no row is left"):
        read_log(path, MATROID, bad="skip")
    path.write_bytes(b"round,arm,reward\n1,0,\xff\n")
    with pytest.raises(FileError, match="not UTF-8"):
        read_log(path, MATROID)
    path.write_text('round,arm,reward\n1,0,"' + "0" * 200_000 + '"\n')
    with pytest.raises(FileError, match="cannot be read as CSV"):
        read_log(path, MATROID)
    with pytest.raises(FileError, match="cannot be read"):
        read_log(tmp_path / "nowhere.csv", MATROID)


def test_other_sources_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        read_log(tmp_path / "text.parquet", MATROID)
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        read_log(tmp_path / "nowhere.parquet", MATROID)
    with pytest.raises(FileError, match=r"ends in \.csv or \.parquet"):
        read_log("log.json", MATROID)
    for wrong in ([(1, 2, 3)], None, 5):
        with pytest.raises(ParameterError, match="source must be"):
            read_log(wrong, MATROID)
    with pytest.raises(FileError, match="one length"):
        read_log({"round": [1, 2], "arm": [0], "reward": [1.0, 0.0]}, MATROID)
    with pytest.raises(FileError, match="must be a vector"):
        read_log({"round": [1], "arm": [[0, 1]], "reward": [1.0]}, MATROID)
    imported = builtins.__import__

    def without(name, *rest):
        if name == "polars":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"semibandit\[results\]"):
        read_log(tmp_path / "text.parquet", MATROID)


def test_arguments_are_checked():
    good = columns(GOOD)
    with pytest.raises(ParameterError, match="bad = 'mend'"):
        read_log(good, MATROID, bad="mend")
    with pytest.raises(ParameterError, match=r"'propensities' is not known .did you mean 'propensity'"):
        read_log(good, MATROID, columns={"propensities": "p"})
    with pytest.raises(ParameterError, match="must be the name of a column"):
        read_log(good, MATROID, columns={"arm": 3})
    with pytest.raises(ParameterError, match="columns must map"):
        read_log(good, MATROID, columns=["arm"])
    # An optional column that is asked for must be there.
    with pytest.raises(FileError, match="no column 'p'"):
        read_log(good, MATROID, columns={"propensity": "p"})
    with pytest.raises(ParameterError, match="matroid must be"):
        read_log(good, 6)
    with pytest.raises(FileError, match=r"row 1: reward is outside \(1, 5\)"):
        read_log(good, MATROID, (1.0, 5.0))
