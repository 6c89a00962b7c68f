"""What is read from the service without changing it: policies and arms as clients see them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.serve.refusals import bad
from semibandit.serve.seats import Seat
from semibandit.serve.wire import ArmList, ArmStatistics, PolicyAnswer

ORDERS = ("id", "mean", "count")


def about_policy(seat: Seat) -> PolicyAnswer:
    """A policy and how it stands. O(1), but for what `describe` costs."""
    policy = seat.policy
    about = seat.catalog.describe() if seat.labelled else policy.describe()  # type: ignore[attr-defined]
    return PolicyAnswer(
        name=seat.name,
        spec=seat.spec,
        n_arms=policy.n_arms,
        rank=policy.matroid.rank,
        round=policy.t,
        rewards=seat.rewards,
        reward_sum=seat.total,
        pending=seat.ledger.pending,
        expired=seat.expired,
        about={key: _plain(value) for key, value in about.items()},
    )


def statistics(seat: Seat, arms: IntArray) -> list[ArmStatistics]:
    """What is known of these arms. O(n) for policies of the catalogue."""
    policy = seat.policy
    with policy._lock:
        scores = policy._scores(arms)
        told = policy._account(arms, scores)
        account = told() if callable(told) else told
        gone = getattr(policy, "inner", policy)._is_gone(arms).tolist()
    columns = [part.tolist() for part in (scores, *account)]
    return [
        ArmStatistics(
            arm=seat.name_of(arm),
            count=int(columns[4][i]),
            mean=_number(columns[1][i]),
            low=_number(columns[2][i]),
            high=_number(columns[3][i]),
            index=_number(columns[0][i]),
            present=not gone[i],
        )
        for i, arm in enumerate(arms.tolist())
    ]


def list_arms(seat: Seat, order: str, offset: int, limit: int, most: int) -> ArmList:
    """Arms `offset` .. in the given order: by id, or largest mean or count first. O(K)."""
    if order not in ORDERS:
        raise bad("order", order, f"order = {order!r}: one of {', '.join(ORDERS)}")
    if not 1 <= limit <= most:
        raise bad("limit", limit, f"limit = {limit} must be in 1 .. {most}")
    if offset < 0:
        raise bad("offset", offset, f"offset = {offset} must be at least 0")
    policy = seat.policy
    if seat.labelled:
        ids = seat.catalog._arms.ids  # type: ignore[attr-defined]
        arms = np.array(sorted(ids.id_of.values()), dtype=np.int64)
    else:
        arms = np.arange(policy.n_arms)
    if order != "id" and arms.size:
        values = policy.counts[arms].astype(float) if order == "count" else policy.means[arms]
        keys = np.where(np.isnan(values), -np.inf, values)
        if order == "mean" and policy.objective == "min":
            keys = np.where(np.isnan(values), -np.inf, -values)
        end = offset + limit
        if end < arms.size:
            # ties by smaller id need all those that equal the last one
            least = np.partition(keys, arms.size - end)[arms.size - end]
            arms, keys = arms[keys >= least], keys[keys >= least]
        arms = arms[np.lexsort((arms, -keys))]
    total = len(seat.catalog) if seat.labelled else policy.n_arms  # type: ignore[attr-defined]
    return ArmList(total, statistics(seat, arms[offset : offset + limit]))


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
