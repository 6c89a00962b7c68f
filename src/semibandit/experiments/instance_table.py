"""An ``[[instance]]`` of an experiment file: what it says, and the environment it describes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit.environments.codec import ROWS as ENVIRONMENTS
from semibandit.environments.codec import make_environment
from semibandit.errors import ExperimentError, MissingExtraError, SemibanditError
from semibandit.experiments.tables import Table, is_number
from semibandit.matroids import codec
from semibandit.text import pip_install

if TYPE_CHECKING:
    from semibandit.environments import Environment
    from semibandit.matroids import Matroid


@dataclass(frozen=True)
class InstanceSpec:
    """One instance. `content` determines it; `label` only names it; `table` is its place in the file."""

    label: str
    content: dict[str, Any]
    table: Table


def read_instance(table: Table, seed: int) -> InstanceSpec:
    """The instance that `table` describes, with every default filled in. Nothing is built yet."""
    table.has("label")
    if table.has("dataset"):
        content, label = _dataset(table)
    else:
        content, label = _described(table, seed)
    given = table.text("label", label)
    if len(given) > 80:
        raise table.error("label", f"must be at most 80 characters, got {len(given)}")
    table.done()
    return InstanceSpec(given, content, table)


def _dataset(table: Table) -> tuple[dict[str, Any], str]:
    name = table.text("dataset")
    options = plain(table, "options", {})
    if not isinstance(options, dict):
        raise table.error("options", f"must be a table of options, got {options!r}")
    words = [str(value) for value in options.values() if isinstance(value, (str, int))]
    return {"dataset": name, "options": options}, " ".join([name, *words])[:80]


def _described(table: Table, seed: int) -> tuple[dict[str, Any], str]:
    kind = table.choice("matroid", codec.names())
    content: dict[str, Any] = {"matroid": kind}
    keys = codec.row(kind).keys
    first = next(iter(keys), None)
    own = first is not None and table.has(first)
    if own:
        for key, needed in keys.items():
            if needed or table.has(key):
                content[key] = table.integer(key, least=1) if key == "arms" else plain(table, key)
        label = kind
    else:
        if first is not None and not table.has("arms"):
            raise table.error(None, f"give arms and rank for a random {kind} matroid, or {first}")
        content["arms"] = table.integer("arms", least=1)
        content["rank"] = table.integer("rank", least=1)
        label = f"{kind} K={content['arms']:,} D={content['rank']:,}"
    world = table.choice("environment", tuple(ENVIRONMENTS), "bernoulli")
    row = ENVIRONMENTS[world]
    content["environment"] = world
    if row.observed is not None:
        content[row.observed] = plain(table, row.observed)
        if table.has("reward_range"):
            content["reward_range"] = table.range("reward_range", (0.0, 1.0))
    else:
        content["means"] = _means(table)
        content["reward_range"] = table.range("reward_range", (0.0, 1.0))
    for key, words in row.choices.items():
        content[key] = table.choice(key, words, words[0])
    for key, default in row.numbers.items():
        if default is not None or table.has(key):
            content[key] = _per_arm(table, key, default)
    for key, whole in row.wholes.items():
        content[key] = table.integer(key, whole, least=1)
    if row.drawn and table.has("changes"):
        content["changes"] = _changes(table, content)
    if table.choice("objective", ("max", "min"), "max") == "min":
        content["objective"] = "min"
    random = isinstance(content.get("means"), str) or not (own or kind == "uniform")
    given = table.integer("seed", seed)
    if random:
        content["seed"] = given
    return content, label if world == "bernoulli" else f"{label} {world}"


def _means(table: Table) -> Any:
    value = table.get("means", "random")
    if value in ("random", "settled"):
        return value
    if not isinstance(value, list) or not value or not all(map(is_number, value)):
        raise table.error("means", 'must be "random", "settled" or a list of numbers, one per arm')
    return [float(mean) for mean in value]


def _changes(table: Table, content: dict[str, Any]) -> list[int]:
    """Rounds in which the means are drawn anew."""
    given = table.get("changes")
    if not isinstance(content.get("means"), str):
        raise table.error("changes", 'draws the means anew: it goes with means = "random" or "settled"')
    rounds: list[Any] = given if isinstance(given, list) else [None]
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in rounds)
    if not rounds or not whole or rounds[0] < 2 or sorted(set(rounds)) != rounds:
        raise table.error(
            "changes", f"must be rounds after the first, in order, such as [1001, 2001], got {given!r}"
        )
    return list(rounds)


def _per_arm(table: Table, key: str, default: float | None) -> float | list[float]:
    value = table.get(key, default)
    if isinstance(value, list) and value and all(map(is_number, value)):
        return [float(one) for one in value]
    return table.number(key, default)


def plain(table: Table, key: str, *default: Any) -> Any:
    """The value of `key` if JSON can hold it: text, finite numbers, true and false, lists and tables of those."""
    value = table.get(key, *default)
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif not isinstance(one, (str, int, float)) or (isinstance(one, float) and not math.isfinite(one)):
            raise table.error(key, f"must be made of text, finite numbers, true and false, got {one!r}")
    return value


def build_environment(content: dict[str, Any]) -> Environment:
    """The environment that an instance's `content` describes. Cost of its matroid and one greedy."""
    if "dataset" in content:
        return _load(content["dataset"], content["options"])
    made = _rewarding(content)
    if content.get("objective") == "min":
        from semibandit.policies.costs import minimize

        return minimize(made)
    return made


def _rewarding(content: dict[str, Any]) -> Environment:
    """The environment without regard to the objective."""
    from semibandit.data.instances import random_means, settled_means
    from semibandit.environments import Switching

    matroid, seed = _matroid(content), content.get("seed", 0)
    name = content["environment"]
    row = ENVIRONMENTS[name]
    options = {
        key: np.asarray(content[key], dtype=float) if isinstance(content[key], list) else content[key]
        for key in row.options
        if key in content
    }
    if "reward_range" in content:
        low, high = content["reward_range"]
        options["reward_range"] = (low, high)
    if row.observed is not None:
        return make_environment(name, matroid, content[row.observed], **options)

    def part(own_seed: int) -> Environment:
        means: Any = content["means"]
        if isinstance(means, str):
            draw = (
                random_means(matroid.n_arms, own_seed)
                if means == "random"
                else settled_means(matroid, own_seed)
            )
            means = low + (high - low) * draw
        return make_environment(name, matroid, means, **options)

    if "changes" in content:
        starts = [1, *content["changes"]]
        return Switching([part(seed + i) for i in range(len(starts))], starts)
    return part(seed)


def _matroid(content: dict[str, Any]) -> Matroid:
    row = codec.row(content["matroid"])
    first = next(iter(row.keys), None)
    if row.from_toml is None or first not in content:
        from semibandit.data.instances import random_matroid

        return random_matroid(row.name, content["arms"], content["rank"], content.get("seed", 0))
    return row.from_toml(**{key: content[key] for key in row.keys if key in content})


def _load(name: str, options: dict[str, Any]) -> Environment:
    try:
        from semibandit import data
    except ImportError as error:
        raise MissingExtraError(
            f"dataset = {name!r} needs semibandit.data, which cannot be loaded ({error}): "
            f"install it with `{pip_install('data')}`"
        ) from None
    made: Environment = data.load(name, **options)
    return made


def build_located(spec: InstanceSpec) -> Environment:
    """`build_environment`, with errors that name the line and key of the file."""
    try:
        return build_environment(spec.content)
    except MissingExtraError:
        raise
    except (SemibanditError, TypeError, ValueError, OverflowError) as error:
        raise located(spec.table, error) from None


def located(table: Table, error: Exception) -> ExperimentError:
    """`error`, met while building what `table` describes, as one about the key that it names first."""
    if isinstance(error, ExperimentError) and ", line " in str(error):
        return error
    return table.source.error((*table.path, *_named_key(str(error), table.values)), str(error))


def _named_key(message: str, values: dict[str, Any]) -> tuple[str, ...]:
    """The first key of a table, or of its options, that a message names; none if it names none."""
    options = values.get("options")
    words = {"n_arms": "arms"}
    if values.get("matroid") in codec.names():
        words |= codec.row(values["matroid"]).words
    for word in re.findall(r"[A-Za-z_]+", message):
        key = words.get(word, word)
        if key in values and key not in ("matroid", "name", "options", "dataset"):
            return (key,)
        if isinstance(options, dict) and key in options:
            return "options", key
    return ()
