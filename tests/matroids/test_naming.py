"""Matroids from what people have: graphs, tables, columns, sparse matrices, nested dictionaries; and their answers."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import oracles.matroids as naive
import semibandit as sb
from semibandit.errors import ArmError, FileError, MatroidError

LINKS = [("Ulm", "Bonn"), ("Bonn", "Kiel"), ("Kiel", "Ulm"), ("Kiel", "Trier")]
COLUMNS = {"source": [u for u, _ in LINKS], "target": [v for _, v in LINKS], "name": list("abcd")}
CAN = {"worker": ["ann", "bob", "ann", "cid", "bob"], "task": ["p", "p", "q", "r", "p"]}


def tables(columns, tmp_path):
    """One table in every form that is read."""
    path = tmp_path / "table.csv"
    pl.DataFrame(columns).write_csv(path)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [columns, pd.DataFrame(columns), pl.DataFrame(columns), path, str(path), rows, iter(rows)]


# -- graphs ------------------------------------------------------------------------------------------------------


def test_graphs_from_every_form_of_a_table(tmp_path):
    same = sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)])
    for table in tables(COLUMNS, tmp_path):
        made = sb.Graphic.from_edges(table)
        assert made == same
        assert made.labels.tolist() == LINKS and made.names.tolist() == ["Ulm", "Bonn", "Kiel", "Trier"]
        assert made.forest([3, 1]) == [("Kiel", "Trier"), ("Bonn", "Kiel")]
    for table in tables(COLUMNS, tmp_path):
        assert sb.Graphic.from_edges(table, label="name").labels.tolist() == list("abcd")
    other = {"von": COLUMNS["source"], "nach": COLUMNS["target"]}
    assert sb.Graphic.from_edges(pd.DataFrame(other), source="von", target="nach").labels.tolist() == LINKS
    for pairs in (LINKS, tuple(LINKS), [list(pair) for pair in LINKS]):
        assert sb.Graphic.from_edges(pairs).labels.tolist() == LINKS


def test_labels_are_indexed_by_what_a_policy_selects():
    roads = sb.Graphic.from_edges(LINKS)
    chosen = roads.labels[sb.CUCB(roads).select()]
    assert chosen.tolist() == [LINKS[0], LINKS[1], LINKS[3]]
    with pytest.raises(ValueError):
        roads.labels[0] = "x"
    for twin in (copy.deepcopy(roads), pickle.loads(pickle.dumps(roads))):
        assert twin.labels.tolist() == LINKS and twin == roads
    assert sb.Graphic([(0, 1)]).labels is None


def test_graphs_of_networkx():
    rng = np.random.default_rng(1)
    for seed in range(5):
        graph = nx.gnm_random_graph(12, 25, seed=seed)
        graph = nx.relabel_nodes(graph, {i: f"site {i}" for i in graph})
        graph.add_node("alone")
        made = sb.Graphic.from_networkx(graph)
        assert made.n_arms == 25 and made.n_vertices == 13
        weights = rng.permutation(25).astype(float)
        for (u, v), weight in zip(graph.edges, weights, strict=True):
            graph[u][v]["weight"] = weight
        tree = nx.maximum_spanning_tree(graph)
        found = made.forest(made.max_weight_base(weights))
        assert {frozenset(edge) for edge in found} == {frozenset(edge) for edge in tree.edges}
        assert nx.is_forest(nx.Graph(found))
    several = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c")])
    assert sb.Graphic.from_networkx(several).labels.tolist() == [("a", "b", 0), ("a", "b", 1), ("b", "c", 0)]


def test_malformed_graphs(tmp_path):
    empty = pl.DataFrame({"source": [], "target": []})
    cases = [
        (lambda: sb.Graphic.from_edges(pd.DataFrame(COLUMNS), source="from"), "no column 'from'.*'source'"),
        (lambda: sb.Graphic.from_edges([("a", "b"), ("a", "b")]), "distinct"),
        (lambda: sb.Graphic.from_edges([("a", "b", "c")]), "pairs of names"),
        (lambda: sb.Graphic.from_edges([("a", None)]), r"target\[0\] = None"),
        (
            lambda: sb.Graphic.from_edges(pd.DataFrame({"source": ["a", None], "target": ["b", "c"]})),
            "in every row",
        ),
        (lambda: sb.Graphic.from_edges({"source": ["a", "b"], "target": ["b"]}), "equally long"),
        (lambda: sb.Graphic.from_edges({"source": [["a"]], "target": ["b"]}), "in every row"),
        (lambda: sb.Graphic.from_edges({"source": "ab", "target": "cd"}), "need a sequence"),
        (lambda: sb.Graphic.from_edges([{"source": "a"}]), "row 0 has no column 'target'"),
        (lambda: sb.Graphic.from_edges([]), "empty|rows"),
        (lambda: sb.Graphic.from_edges(empty), "empty"),
        (lambda: sb.Graphic.from_edges(3), "a table must be"),
        (lambda: sb.Graphic.from_edges(COLUMNS | {"name": list("aabc")}, label="name"), "distinct"),
        (lambda: sb.Graphic.from_networkx(nx.DiGraph([(0, 1)])), "to_undirected"),
        (lambda: sb.Graphic.from_networkx(nx.Graph()), "no edges"),
        (lambda: sb.Graphic.from_networkx([(0, 1)]), "networkx"),
    ]
    for call, message in cases:
        with pytest.raises(MatroidError, match=message):
            call()
    path = tmp_path / "bad.csv"
    path.write_text("source,target\na,b\nc\n")
    with pytest.raises(FileError, match="line 3: 1 cells"):
        sb.Graphic.from_edges(path)
    with pytest.raises(FileError, match="cannot be read"):
        sb.Graphic.from_edges(tmp_path / "nowhere.csv")
    path.write_text("source,target\na,\n")
    with pytest.raises(MatroidError, match="in every row"):
        sb.Graphic.from_edges(path)
    path.write_text("")
    with pytest.raises(MatroidError, match="no column"):
        sb.Graphic.from_edges(path)


def test_a_forest_has_no_cycle():
    ring = sb.Graphic([(0, 1), (1, 2), (2, 0)])
    assert ring.forest([]) == []
    with pytest.raises(ArmError, match="cycle"):
        ring.forest([0, 1, 2])
    with pytest.raises(ArmError):
        ring.forest([3])


# -- groups ------------------------------------------------------------------------------------------------------


def test_groups_from_columns():
    values = ["b", "a", "b", "c"]
    for column in (
        values,
        tuple(values),
        np.array(values),
        pd.Series(values),
        pl.Series(values),
        iter(values),
    ):
        made = sb.Partition.from_column(column, {"a": 1, "b": 3, "c": 1, "unused": 2})
        assert made == sb.Partition([1, 0, 1, 2], [1, 3, 1, 2])
        assert made.labels.tolist() == [0, 1, 2, 3] and made.names.tolist() == ["a", "b", "c", "unused"]
    assert sb.Partition.from_column(pd.Categorical(values), 1) == sb.Partition([0, 1, 0, 2], 1)
    assert sb.Partition.from_column([1, 1, 2], 1, pl.Series(["x", "y", "z"])).labels.tolist() == [
        "x",
        "y",
        "z",
    ]
    for column, quotas, labels, message in (
        (["a", "d"], {"a": 1}, None, r"categories\[1\] = 'd' has no quota"),
        (["a", None], {"a": 1}, None, "in every row"),
        (pd.Series([1.0, float("nan")]), 1, None, "in every row"),
        (["a"], {"a": 1.5}, None, r"quotas\['a'\]"),
        (["a"], {"a": -1}, None, "at least 0"),
        (["a"], {"a": 0}, None, "loop"),
        (["a", "a"], 1, ["x"], "one per arm"),
        (["a", "a"], 1, ["x", "x"], "distinct"),
        ("ab", 1, None, "sequence"),
        ([], 1, None, "empty"),
    ):
        with pytest.raises(MatroidError, match=message):
            sb.Partition.from_column(column, quotas, labels)


def test_nested_families():
    tree = {"news": {"sport": ["a", "b"], "world": ["c"]}, "music": {"sport": ["d"], "pop": ["e", "f"]}}
    quotas = {"news": 2, ("news", "sport"): 1, "pop": 1}
    made = sb.Laminar.from_nested(tree, quotas, total=3)
    assert made.labels.tolist() == list("abcdef")
    independent = naive.laminar([(range(6), 3), (range(3), 2), ([0, 1], 1), ([4, 5], 1)])
    for arms in naive.subsets(range(6)):
        assert made.is_independent(list(arms)) == independent(arms)
    assert made.names.tolist() == [
        (),
        ("news",),
        ("music",),
        ("news", "sport"),
        ("news", "world"),
        ("music", "sport"),
        ("music", "pop"),
    ]
    for bad_tree, bad_quotas, message in (
        (tree, {"sport": 1}, "2 families have this name; say which by a tuple"),
        (tree, {"radio": 1}, "no family has this name"),
        (tree, {"pop": -1}, "at least 0"),
        (tree, {"pop": "x"}, "integer"),
        (tree, {"pop": 1, ("music", "pop"): 2}, "twice"),
        (tree, [], "dictionary"),
        ({"x": ["a"], "y": ["a"]}, {}, "distinct"),
        ({"x": "abc"}, {}, "sequence"),
        ({"x": []}, {}, "no arms"),
        ({}, {}, "dictionary"),
        (["a"], {}, "dictionary"),
        (tree, {"news": 0, "music": 0}, "loop"),
    ):
        with pytest.raises(MatroidError, match=message):
            sb.Laminar.from_nested(bad_tree, bad_quotas)


# -- tasks and vectors -------------------------------------------------------------------------------------------


def test_workers_from_every_form_of_a_table(tmp_path):
    for table in tables(CAN, tmp_path):
        made = sb.Transversal.from_frame(table)
        assert made == sb.Transversal([[0, 1], [0], [2]])
        assert made.labels.tolist() == ["ann", "bob", "cid"] and made.names.tolist() == ["p", "q", "r"]
        assert made.matching([0, 1, 2]) == {"ann": "q", "bob": "p", "cid": "r"}
    turned = sb.Transversal.from_frame(pl.DataFrame(CAN), worker="task", task="worker")
    assert turned.labels.tolist() == ["p", "q", "r"]
    for bad, message in (
        ({"worker": [], "task": []}, "empty"),
        ({"worker": ["a"], "task": [None]}, r"task\[0\] = None"),
        ({"who": ["a"], "task": ["x"]}, "no column 'worker'"),
    ):
        with pytest.raises(MatroidError, match=message):
            sb.Transversal.from_frame(bad)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "dok_array", "lil_matrix"])
def test_sparse_matrices(form):
    table = np.array([[1, 0, 2], [0, 0, 0], [0, -1, 0]])
    matrix = getattr(scipy.sparse, form)(table)
    made = sb.Transversal.from_sparse(matrix, labels=list("xyz"), names=["p", "q", "r"])
    assert made == sb.Transversal([[0, 2], [], [1]], n_right=3)
    assert made.matching([2, 0]) == {"z": "q", "x": "p"}
    vectors = sb.Linear.from_sparse(matrix, labels=list("xyz"))
    assert vectors == sb.Linear(table) and vectors.labels.tolist() == list("xyz")
    assert sb.Linear.from_sparse(matrix, field=2).loops.tolist() == [1]


def test_stored_zeros_and_repetitions_of_a_sparse_matrix():
    matrix = scipy.sparse.coo_array(([1, 2, 0, 1, -1], ([0, 0, 0, 1, 1], [0, 0, 1, 0, 0])), shape=(2, 2))
    with pytest.raises(MatroidError, match="names"):
        sb.Transversal.from_sparse(matrix, names=["p"])
    assert sb.Transversal.from_sparse(matrix) == sb.Transversal([[0], []], n_right=2)
    assert matrix.nnz == 5, "the matrix given is not changed"
    for bad in (np.eye(2), [[1, 0]], scipy.sparse.coo_array(np.ones(3))):
        with pytest.raises(MatroidError, match=r"scipy\.sparse matrix"):
            sb.Transversal.from_sparse(bad)
        with pytest.raises(MatroidError, match=r"scipy\.sparse matrix"):
            sb.Linear.from_sparse(bad)


def test_matchings_are_matchings():
    rng = np.random.default_rng(2)
    for _ in range(30):
        n = int(rng.integers(1, 9))
        neighbours = [rng.permutation(5)[: rng.integers(0, 4)].tolist() for _ in range(n)]
        neighbours[0] = [0]
        made = sb.Transversal(neighbours, n_right=5)
        independent = naive.transversal(neighbours)
        for arms in naive.subsets(range(n)):
            if independent(arms):
                found = made.matching(list(arms))
                assert list(found) == list(arms) and len(set(found.values())) == len(arms)
                assert all(right in neighbours[arm] for arm, right in found.items())
            else:
                with pytest.raises(ArmError, match="cannot all be matched"):
                    made.matching(list(arms))
