"""What is asked of a catalog in terms of labels, in terms of arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from semibandit.arms import FloatArray, IntArray
from semibandit.catalog.labels import label_list
from semibandit.checks import LARGEST, as_vector, finite_ends
from semibandit.errors import ArmError, ParameterError, RewardError
from semibandit.policies.base import Policy

ArmsOf = Callable[[list[Any], str], tuple[IntArray, IntArray]]


def wish(arms_of: ArmsOf, exclude: Any, among: Any, weights: Any) -> dict[str, Any]:
    """The keywords for `Policy.select`. `arms_of` finds the arms of labels, and the places of those it found. O(n)."""
    asked: dict[str, Any] = {}
    if exclude is not None:
        asked["exclude"], _ = arms_of(label_list(exclude, "exclude"), "exclude")
    if isinstance(weights, Mapping):
        if among is not None:
            raise ParameterError("weights names labels itself: leave out among, or give a list of weights")
        among, weights = list(weights), list(weights.values())
    if among is not None:
        labels = label_list(among, "among")
        asked["among"], places = arms_of(labels, "among")
        if len(set(asked["among"].tolist())) < len(places):
            again = next(label for at, label in enumerate(labels) if label in labels[:at])
            raise ArmError(f"label {again!r} is named twice in among")
        if weights is not None:
            values = as_vector(weights, "weights")
            if values.size != len(labels):
                raise ParameterError(
                    f"weights must have one value per label of among ({len(labels)}), got {values.size} values"
                )
            asked["weights"] = values[places]
    elif weights is not None:
        raise ParameterError(
            "weights of labels are told as {label: weight}, or as a list together with among"
        )
    return asked


def check_rewards(labels: list[Any], values: FloatArray, policy: Policy) -> None:
    """A `RewardError` for the first reward that the policy would refuse. O(n)."""
    low, high = (-LARGEST, LARGEST) if policy.outside == "clip" else finite_ends(policy.reward_range)
    for at, value in enumerate(values.tolist()):
        if not low <= value <= high:
            what = f"rewards[{at}] = {value} for {labels[at]!r}"
            raise RewardError(f"{what} is outside reward_range = ({low}, {high})")
