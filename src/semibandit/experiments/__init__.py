"""Experiments in files: policies x instances x repeats, run in parallel, resumable, reproducible to the byte."""

from __future__ import annotations

from semibandit.experiments.definition import Experiment, PolicySpec, load_experiment, parse_experiment
from semibandit.experiments.instance_table import InstanceSpec
from semibandit.experiments.runner import Outcome, Stopped, run_experiment
from semibandit.experiments.store import Store

__all__ = [
    "Experiment",
    "InstanceSpec",
    "Outcome",
    "PolicySpec",
    "Stopped",
    "Store",
    "load_experiment",
    "parse_experiment",
    "run_experiment",
]
