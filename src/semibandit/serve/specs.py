"""What a policy in the service is made of: read from a request, a TOML file or the log, never a path or a class.

Names are looked up in the catalogue of policies and the table of matroids; everything else is plain numbers and texts,
checked by the constructors that take them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from semibandit.catalog import Catalog
from semibandit.distributed import Sharded
from semibandit.distributed.cluster import is_cluster
from semibandit.distributed.kinds import KINDS
from semibandit.errors import SemibanditError
from semibandit.matroids import Matroid, codec
from semibandit.policies.base import Policy
from semibandit.policies.catalogue import POLICIES, build_policy
from semibandit.policies.costs import minimize
from semibandit.policies.linear.policy import LinearPolicy
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.wire import PolicySpec
from semibandit.text import unknown

#: Kinds of catalogs and what each needs to know besides `capacity`, `remember` and `labels`.
CATALOGS: dict[str, tuple[str, ...]] = {
    "uniform": ("rank",),
    "partition": ("quotas", "total"),
    "graphic": (),
    "transversal": ("tasks",),
}


#: Shards in the process of the service.
LOCAL = "local"


def check_spec(spec: PolicySpec, most_arms: int) -> None:
    """A `Refusal` for what can be seen to be wrong before anything is built."""
    if (spec.matroid is None) == (spec.catalog is None):
        raise bad("matroid", spec.matroid, "give either matroid or catalog")
    if spec.policy not in POLICIES:
        told = unknown(f"policy = {spec.policy!r} is not known", spec.policy, POLICIES)
        raise bad("policy", spec.policy, told)
    if spec.objective not in ("max", "min"):
        raise bad("objective", spec.objective, f"objective = {spec.objective!r}: max or min")
    if spec.ttl is not None and not (math.isfinite(spec.ttl) and 1e-3 <= spec.ttl <= 1e9):
        raise bad("ttl", spec.ttl, f"ttl = {spec.ttl}: seconds from 0.001 to 10^9, or null for ever")
    if not 1 <= spec.max_pending <= 100_000_000:
        raise bad("max_pending", spec.max_pending, "max_pending must be in 1 .. 10^8")
    if not 1 <= spec.max_keys <= 100_000_000:
        raise bad("max_keys", spec.max_keys, "max_keys must be in 1 .. 10^8")
    if not 0 <= spec.seed < 2**63:
        raise bad("seed", spec.seed, f"seed = {spec.seed} must be in 0 .. 2^63 - 1")
    _check_shards(spec)
    for key in ("arms", "capacity"):
        size = (spec.matroid or spec.catalog or {}).get(key)
        if isinstance(size, (int, float)) and size > most_arms:
            raise Refusal(413, "too_many_arms", f"{key} = {size}: at most {most_arms}", field=key, value=size)


def _check_shards(spec: PolicySpec) -> None:
    if spec.on != LOCAL and not is_cluster(spec.on):
        told = f"on = {spec.on!r}: 'local', 'ray', 'ray://host:port' or 'host:port'"
        raise bad("on", spec.on, told)
    if spec.shards is None:
        if spec.on != LOCAL:
            raise bad("on", spec.on, f"on = {spec.on!r} is where shards live: say how many with shards")
        return
    if not 1 <= spec.shards <= 4096:
        raise bad("shards", spec.shards, f"shards = {spec.shards} must be in 1 .. 4096")
    if spec.catalog is not None:
        raise bad("shards", spec.shards, "shards go with a matroid; a catalog lives in one process")
    if spec.objective == "min":
        told = "shards go with objective = 'max': send a + b - cost as the reward for a range (a, b)"
        raise bad("shards", spec.shards, told)
    if spec.policy not in KINDS:
        told = f"policy = {spec.policy!r} has no shards: {', '.join(map(repr, KINDS))} can"
        raise bad("policy", spec.policy, told)


def build(spec: PolicySpec) -> Policy | Catalog:
    """The policy, or the catalog with its first labels; a `Refusal` for what makes no sense. O(K)."""
    try:
        return _policy(spec, _matroid(spec)) if spec.catalog is None else _catalog(spec, spec.catalog)
    except Refusal:
        raise
    except SemibanditError as error:
        raise bad("catalog" if spec.matroid is None else "matroid", None, str(error)) from None
    except (TypeError, ValueError, KeyError, OverflowError, MemoryError, AttributeError, IndexError) as error:
        told = f"the policy cannot be made: {type(error).__name__}: {error}"
        raise bad("catalog" if spec.matroid is None else "matroid", None, told) from None


def _policy(spec: PolicySpec, matroid: Matroid) -> Policy:
    factory: Any = POLICIES[spec.policy].factory
    if isinstance(factory, type) and issubclass(factory, LinearPolicy):
        told = f"policy = {spec.policy!r} is not served: requests have no room for features yet"
        raise bad("policy", spec.policy, told)
    if spec.shards is not None:
        # Of the policy, that is: not where shards keep their files.
        _only(spec.options, POLICIES[spec.policy].options, "options")
        return Sharded(
            matroid,
            policy=spec.policy,
            shards=spec.shards,
            on=place_of(spec),
            reward_range=spec.reward_range,
            seed=spec.seed,
            **spec.options,
        )
    made = build_policy(spec.policy, spec.options, matroid, spec.reward_range, spec.seed)
    return minimize(made) if spec.objective == "min" else made


def place_of(spec: PolicySpec) -> str | None:
    """Where the shards live, as `Sharded` calls it."""
    return None if spec.on == LOCAL else spec.on


def _matroid(spec: PolicySpec) -> Matroid:
    table = dict(spec.matroid or {})
    kind = table.pop("kind", "uniform")
    if not isinstance(kind, str) or kind not in codec.names():
        told = unknown(f"matroid.kind = {kind!r} is not known", kind, codec.names())
        raise bad("matroid.kind", kind, told)
    row = codec.row(kind)
    first = next(iter(row.keys), None)
    if first is not None and first in table:
        _only(table, tuple(row.keys), "matroid")
        missing = [key for key, needed in row.keys.items() if needed and key not in table]
        if missing:
            raise bad(f"matroid.{missing[0]}", None, f"a {kind} matroid needs {missing[0]}")
        assert row.from_toml is not None
        return row.from_toml(**table)
    _only(table, ("arms", "rank"), "matroid")
    arms, rank = (_whole(table, key, f"a {kind} matroid needs {key}") for key in ("arms", "rank"))
    if rank > arms:
        raise bad("matroid.rank", rank, f"rank = {rank} is more than arms = {arms}")
    return row.random(arms, rank, spec.seed)


def _catalog(spec: PolicySpec, given: dict[str, Any]) -> Catalog:
    table = dict(given)
    kind, labels = table.pop("kind", "uniform"), table.pop("labels", [])
    if not isinstance(kind, str) or kind not in CATALOGS:
        told = unknown(f"catalog.kind = {kind!r} is not known", kind, CATALOGS)
        raise bad("catalog.kind", kind, told)
    _only(table, (*CATALOGS[kind], "capacity", "remember"), "catalog")
    table = {key: as_label(value) if key == "tasks" else value for key, value in table.items()}
    if isinstance(table.get("quotas"), list):
        table["quotas"] = {as_label(name): quota for name, quota in table["quotas"]}

    def make(matroid: Matroid) -> Policy:
        return _policy(spec, matroid)

    catalog: Catalog = getattr(Catalog, kind)(policy=make, **table)
    if not isinstance(labels, list):
        raise bad("catalog.labels", labels, "labels must be a list")
    for one in labels:
        pair = one if isinstance(one, list) and kind != "uniform" else [one, None]
        if len(pair) != 2:
            raise bad("catalog.labels", one, f"labels: {one!r} is not [label, attribute]")
        catalog.add(as_label(pair[0]), as_label(pair[1]))
    catalog.policy  # noqa: B018  settles: the policy knows its first labels
    return catalog


def as_label(value: Any) -> Any:
    """A label as Python has it: lists become tuples."""
    return tuple(as_label(part) for part in value) if isinstance(value, list) else value


def _only(table: dict[str, Any], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise bad(f"{where}.{key}", table[key], unknown(f"{where}.{key} is not known", key, known))


def _whole(table: dict[str, Any], key: str, needed: str) -> int:
    value = table.get(key)
    if value is None:
        raise bad(f"matroid.{key}", None, needed)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise bad(f"matroid.{key}", value, f"matroid.{key} = {value!r} must be an integer of at least 1")
    return value
