"""Films and what critics said of them: diverse recommendation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np

from semibandit.checks import one_of
from semibandit.data import DATASETS, Dataset, package_file
from semibandit.environments import Bernoulli
from semibandit.errors import ParameterError
from semibandit.matroids import Laminar, Matroid, Partition, Transversal


def movies(
    kind: str = "partition", capacity: int = 2, min_reviews: int = 20, slots: int = 2, seed: int = 0
) -> Dataset:
    """Films to recommend; the reward is whether a critic's review is favourable.

    An arm is a film with at least `min_reviews` reviews. Its mean is the share of favourable ones, and a reward is one
    review drawn at random (Bernoulli).

    ``kind="partition"``: at most `capacity` films of each first-named genre. ``"laminar"``: at most `capacity` of each
    genre within a decade, and at most 5 films a decade. ``"transversal"``: `slots` places for each genre, each filled
    by a film that names the genre; a film may name several.
    """
    kinds = DATASETS["movies"].kinds
    one_of(kind, "kind", kinds)
    for name, value in (("capacity", capacity), ("min_reviews", min_reviews), ("slots", slots)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be an integer of at least 1, got {value!r}")
    rows = _rows(min_reviews)
    if not rows:
        raise ParameterError(f"min_reviews = {min_reviews}: no film has so many")
    genres = [sorted({part.strip() for part in row[2].split(",") if part.strip()}) for row in rows]
    first = [row[2].split(",")[0].strip() for row in rows]
    number = {genre: i for i, genre in enumerate(sorted({genre for names in genres for genre in names}))}
    matroid: Matroid
    if kind == "partition":
        matroid = Partition([number[genre] for genre in first], np.full(len(number), capacity))
    elif kind == "laminar":
        decades: dict[int, list[int]] = {}
        cells: dict[tuple[int, str], list[int]] = {}
        for arm, (row, genre) in enumerate(zip(rows, first, strict=True)):
            decades.setdefault(row[1] // 10, []).append(arm)
            cells.setdefault((row[1] // 10, genre), []).append(arm)
        families: list[tuple[Any, int]] = [(arms, 5) for _, arms in sorted(decades.items())]
        matroid = Laminar(len(rows), families + [(arms, capacity) for _, arms in sorted(cells.items())])
    else:
        places = [[number[g] * slots + s for g in names for s in range(slots)] for names in genres]
        matroid = Transversal(places, n_right=slots * len(number))
    means = np.array([row[3] / row[4] for row in rows])
    return Dataset(
        name=f"movies:{kind}",
        env=Bernoulli(matroid, np.clip(means, 0.0, 1.0), seed=seed),
        labels=[f"{row[0]} ({row[1]}) - {', '.join(names)}" for row, names in zip(rows, genres, strict=True)],
        about=f"{len(rows)} films with at least {min_reviews} reviews, {len(number)} genres",
    )


def _rows(min_reviews: int) -> list[tuple[str, int, str, int, int]]:
    """(title, year, genres, favourable reviews, reviews), ordered by the data set's own number."""
    query = """
        SELECT o.Title, o.Year, o.Genre, t.Fresh, t.Reviews FROM omdb o JOIN tomatoes t ON t.ID = o.ID
        WHERE t.Reviews >= ? AND t.Fresh IS NOT NULL AND o.Year IS NOT NULL
          AND o.Genre IS NOT NULL AND trim(o.Genre, ' ,') != '' ORDER BY o.ID
    """
    path = package_file("bokeh_sampledata", "_data/movies.db")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return database.execute(query, (min_reviews,)).fetchall()
