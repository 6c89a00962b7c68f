"""Plain text tables and numbers as people read them."""

from __future__ import annotations

from semibandit.text import duration, nearest, number, table, unknown


def test_numbers_as_people_read_them() -> None:
    values = [0.2134, 7.94, 49.96, 523.4, 3120.0, 0.0, float("nan"), None]
    assert [number(v) for v in values] == ["0.213", "7.94", "50.0", "523", "3,120", "0", "-", "-"]
    seconds = (0.01, 0.1, 8.2, 60, 750, 3 * 3600, 4 * 86400)
    assert [duration(s) for s in seconds] == ["10 ms", "0.1 s", "8.2 s", "1 min", "12 min", "3 h", "4 days"]
    lines = table(("a", "b"), [("x", "10"), ("long", "7")]).splitlines()
    assert lines == ["a      b", "----  --", "x     10", "long   7"]


def test_names_that_were_meant() -> None:
    known = ["cts", "cucb", "faster-cucb", "kl-osm"]
    meant = {"CUCB": "cucb", "KLOSM": "kl-osm", "faster_cucb": "faster-cucb", "cubc": "cucb", "moon": None}
    assert {word: nearest(word, known) for word in meant} == meant
    assert nearest(3, ["three"]) is None and nearest("x", []) is None
    assert unknown("no such policy", "ctx", known) == (
        "no such policy, did you mean 'cts'? It is one of cts, cucb, faster-cucb, kl-osm"
    )
