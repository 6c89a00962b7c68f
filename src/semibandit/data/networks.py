"""Networks whose links are arms: Internet providers and air routes."""

from __future__ import annotations

import csv
import gzip
from importlib import import_module
from typing import Any

import numpy as np

from semibandit.checks import one_of
from semibandit.data import DATASETS, Dataset, package_file
from semibandit.environments import Beta
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Matroid, Partition
from semibandit.policies.costs import minimize

# Light in fibre covers about 200 km in a millisecond; every hop adds a little of its own.
_KM_A_MS = 200.0
_HOP_MS = 0.2


def isp(network: str = "caida/2024-08/3356", seed: int = 0) -> Dataset:
    """Least-latency spanning tree of a provider's network: arms are links, costs are milliseconds.

    `network` is a key of topohub, such as ``"topozoo/Geant2012"``, ``"sndlib/germany50"`` or
    ``"caida/2024-08/7018"`` (an autonomous system by number). A link's mean latency is that of light in fibre over its
    length and a fifth of a millisecond; single measurements scatter around it (Beta, concentration 20).
    """
    topohub = import_module("topohub")
    try:
        found = topohub.get(network)
    except Exception as error:  # topohub raises several kinds for a key it does not have
        raise ParameterError(
            f"network = {network!r} is not in topohub; keys look like 'topozoo/Geant2012', 'sndlib/germany50', "
            f"'backbone/europe', 'caida/2024-08/3356' ({type(error).__name__})"
        ) from None
    nodes = found["nodes"]
    number = {node["id"]: i for i, node in enumerate(nodes)}
    names = [str(node.get("name") or node["id"]) for node in nodes]
    links = [link for link in found["edges"] if link["source"] != link["target"]]
    edges = np.array([(number[link["source"]], number[link["target"]]) for link in links], dtype=np.int64)
    latency = np.array([link["dist"] for link in links]) / _KM_A_MS + _HOP_MS
    matroid = Graphic(edges, n_vertices=len(nodes))
    env = Beta(matroid, latency, 20.0, reward_range=(0.0, 1.5 * float(latency.max())), seed=seed)
    return Dataset(
        name=f"isp:{network}",
        env=minimize(env),
        labels=[f"{names[a]} - {names[b]}" for a, b in edges.tolist()],
        about=f"{network}: {len(nodes)} nodes, {len(links)} links, latency in ms",
        positions=np.array([node["pos"] for node in nodes], dtype=np.float64),
        vertices=names,
    )


def flights(kind: str = "graphic", capacity: int = 2, seed: int = 0) -> Dataset:
    """US air routes; costs are hours in the air.

    ``kind="graphic"``: airports are vertices and routes links; the cheapest spanning forest. ``"partition"``:
    `capacity` routes of every carrier. A route takes its great-circle length at 750 km/h and half an hour; single
    flights scatter around that (Beta, concentration 40).
    """
    kinds = DATASETS["flights"].kinds
    one_of(kind, "kind", kinds)
    where: dict[str, tuple[float, float]] = {}
    with package_file("vega_datasets", "_data/airports.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            where[row["iata"]] = float(row["longitude"]), float(row["latitude"])
    routes: dict[tuple[str, ...], None] = {}
    with gzip.open(package_file("bokeh_sampledata", "_data/routes.csv.gz"), "rt", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            ends = sorted((row["Source"], row["Destination"]))
            if ends[0] != ends[1] and ends[0] in where and ends[1] in where:
                routes[(*ends, row["Airline"]) if kind == "partition" else tuple(ends)] = None
    listed = sorted(routes)
    airports = sorted({end for route in listed for end in route[:2]})
    number = {code: i for i, code in enumerate(airports)}
    edges = np.array([(number[route[0]], number[route[1]]) for route in listed], dtype=np.int64)
    positions = np.array([where[code] for code in airports])
    hours = great_circle(positions[edges[:, 0]], positions[edges[:, 1]]) / 750.0 + 0.5
    matroid: Matroid
    if kind == "graphic":
        matroid = Graphic(edges, n_vertices=len(airports))
        labels = [f"{a} - {b}" for a, b in (route[:2] for route in listed)]
    else:
        carriers = sorted({route[2] for route in listed})
        group = {carrier: i for i, carrier in enumerate(carriers)}
        matroid = Partition([group[route[2]] for route in listed], capacities=capacity)
        labels = [f"{carrier} {a} - {b}" for a, b, carrier in listed]
    env = Beta(matroid, hours, 40.0, reward_range=(0.0, 1.5 * float(hours.max())), seed=seed)
    return Dataset(
        name=f"flights:{kind}",
        env=minimize(env),
        labels=labels,
        about=f"{len(airports)} airports, {len(listed)} routes, hours in the air",
        positions=positions,
        vertices=airports,
    )


def great_circle(one: Any, two: Any) -> Any:
    """Kilometres between points given as rows of (longitude, latitude) in degrees. O(rows)."""
    a, b = np.radians(one), np.radians(two)
    half = (
        np.sin((a[:, 1] - b[:, 1]) / 2) ** 2
        + np.cos(a[:, 1]) * np.cos(b[:, 1]) * np.sin((a[:, 0] - b[:, 0]) / 2) ** 2
    )
    return 2.0 * 6371.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))
