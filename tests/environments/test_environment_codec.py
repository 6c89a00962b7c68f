"""The table of environments: every class is in it, and what it says of a class is so."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import semibandit as sb
from semibandit import environments
from semibandit.environments.codec import DRAWN, ROWS, make_environment, row


@pytest.mark.parametrize("name", ROWS)
def test_options_are_keywords_of_the_class(name: str) -> None:
    one = row(name)
    parameters = inspect.signature(one.load().__init__).parameters
    assert set(one.options) <= set(parameters)
    for key, words in one.choices.items():
        assert parameters[key].default == words[0]
    if one.observed is not None:
        assert one.observed in parameters


def test_every_class_of_the_room_has_a_row() -> None:
    classes = {name for name in environments.__all__ if isinstance(getattr(environments, name), type)}
    made_otherwise = {"Environment", "EnvironmentState", "Switching"}
    assert classes == {one.cls for one in ROWS.values()} | made_otherwise


@pytest.mark.parametrize("name", DRAWN)
def test_environments_are_made_by_name(name: str) -> None:
    matroid = sb.Uniform(n_arms=3, rank=2)
    env = make_environment(name, matroid, [0.2, 0.5, 0.8], seed=3)
    assert type(env).__name__ == ROWS[name].cls
    assert env.optimal_base.tolist() == [1, 2]
    assert env.seed == 3


def test_another_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(sb.ParameterError, match="bernoulli"):
        row("bernouli")


def test_names_cost_no_import() -> None:
    code = "import sys, semibandit.environments.codec; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
