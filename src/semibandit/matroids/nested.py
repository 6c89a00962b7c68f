"""Nested dictionaries as a tree of families, for `Laminar.from_nested`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semibandit.errors import MatroidError
from semibandit.matroids.naming import column
from semibandit.matroids.validate import positive, whole_number

Path = tuple[Any, ...]


def unfold(
    tree: Any, quotas: Any, total: int | None
) -> tuple[list[Any], list[int], list[int], list[int | None], list[Path]]:
    """Labels, the innermost family of each, and parent, quota and path of each family; family 0 holds all. O(size)."""
    if not isinstance(tree, Mapping) or not tree:
        raise MatroidError(
            f"tree = {tree!r}: need a dictionary of families, each a dictionary or a list of labels"
        )
    labels: list[Any] = []
    leaf: list[int] = []
    paths: list[Path] = [()]
    parent = [-1]
    waiting: list[tuple[Any, int]] = [(tree, 0)]
    # Depth first, families in their order; the list is a stack, so they are pushed in reverse.
    while waiting:
        content, family = waiting.pop()
        if isinstance(content, Mapping):
            inside = []
            for name, part in content.items():
                parent.append(family)
                paths.append((*paths[family], name))
                inside.append((part, len(paths) - 1))
            waiting += reversed(inside)
        else:
            members = column(content, f"family {paths[family]!r}")
            labels += members
            leaf += [family] * len(members)
    if not labels:
        raise MatroidError("tree holds no arms: need at least one label in an innermost list")
    bound: list[int | None] = [None] * len(paths)
    for family, quota in _by_family(quotas, paths).items():
        bound[family] = quota
    if total is not None:
        bound[0] = positive(total, "total")
    return labels, leaf, parent, bound, paths


def _by_family(quotas: Any, paths: list[Path]) -> dict[int, int]:
    if not isinstance(quotas, Mapping):
        raise MatroidError(f"quotas = {quotas!r}: need a dictionary of numbers by the name of the family")
    by_path = {path: i for i, path in enumerate(paths) if path}
    by_name: dict[Any, list[Path]] = {}
    for path in by_path:
        by_name.setdefault(path[-1], []).append(path)
    found = {}
    for name, quota in quotas.items():
        path = name
        if name not in by_path:
            fitting = by_name.get(name, [])
            if len(fitting) > 1:
                raise MatroidError(
                    f"quotas[{name!r}]: {len(fitting)} families have this name; say which by a tuple, as {fitting[0]!r}"
                )
            if not fitting:
                known = ", ".join(repr(path[-1]) for path in list(by_path)[:10])
                raise MatroidError(f"quotas[{name!r}]: no family has this name; there are {known}")
            path = fitting[0]
        if by_path[path] in found:
            raise MatroidError(f"quotas[{name!r}]: this family is named twice")
        bound = whole_number(quota, f"quotas[{name!r}]")
        if bound < 0:
            raise MatroidError(f"quotas[{name!r}] = {bound}: a capacity is at least 0")
        found[by_path[path]] = bound
    return found
