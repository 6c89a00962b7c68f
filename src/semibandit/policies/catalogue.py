"""Policies by name, with what they cost and promise: what the command line offers, files hold and the docs list.

A policy enters with the decorator `register` on its class; nothing else names it. Modules of this package are looked
through when the catalogue is first asked, so a new policy is one file; a policy from elsewhere enters when its module
is imported. Its class is called as ``cls(matroid, reward_range=..., **options)``, with ``seed=...`` and with whatever
of the context (`horizon`: the rounds planned; `means`: the true ones, for the oracle) it has a parameter for.

>>> from semibandit.policies.catalogue import POLICIES
>>> POLICIES["cucb"].reference
'Gai et al. 2012; Chen et al. 2013; Kveton et al. 2014'
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.text import unknown

P = TypeVar("P", bound=type[Policy])

# Parameters that are not options: the caller fills them in.
GIVEN = ("matroid", "reward_range", "seed", "means", "features")


@dataclass(frozen=True)
class PolicyEntry:
    """One policy of the catalogue."""

    name: str
    factory: type[Policy]
    cost: str
    guarantee: str
    reference: str
    take: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that may follow the policy's name."""
        names = inspect.signature(self.factory).parameters
        return tuple(name for name in names if name not in GIVEN)


# A comma that is not inside brackets.
_COMMA = re.compile(r",(?![^()]*\))")

_entries: dict[str, PolicyEntry] = {}


def register(*, cost: str, guarantee: str, reference: str, take: str = "") -> Callable[[P], P]:
    """Put a policy class into the catalogue, under its `name`: on the command line, in experiments, in files.

    `cost`: of a round. `guarantee`: what is proven of its regret. `reference`: where it comes from. `take`: when to
    take this one rather than another, in a few words.
    """

    def decorate(cls: P) -> P:
        known = _entries.get(cls.name)
        if known is not None and known.factory.__qualname__ != cls.__qualname__:
            raise ParameterError(f"policy {cls.name!r} is {known.factory.__qualname__} already")
        _entries[cls.name] = PolicyEntry(cls.name, cls, cost, guarantee, reference, take)
        return cls

    return decorate


@functools.cache
def _discover() -> None:
    """Import all modules of this package, so that their policies are registered."""
    import semibandit.policies as package

    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


class _Catalogue(Mapping[str, PolicyEntry]):
    """The registered policies, by name in alphabetical order."""

    def __getitem__(self, name: str) -> PolicyEntry:
        _discover()
        return _entries[name]

    def __iter__(self) -> Iterator[str]:
        _discover()
        return iter(sorted(_entries))

    def __len__(self) -> int:
        _discover()
        return len(_entries)


POLICIES: Mapping[str, PolicyEntry] = _Catalogue()


def policy_class(class_name: str) -> type[Policy] | None:
    """The registered class of this name, if there is one."""
    found = (entry.factory for entry in POLICIES.values() if entry.factory.__name__ == class_name)
    return next(found, None)


def _value(text: str) -> Any:
    """An option's value as the type it looks like."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_policy(spec: str) -> tuple[PolicyEntry, dict[str, Any]]:
    """``name`` or ``name:option=value,option=value`` as an entry and its options.

    >>> entry, options = parse_policy("cucb:clock=staircase,step=0.02")
    >>> entry.name, options
    ('cucb', {'clock': 'staircase', 'step': 0.02})
    >>> parse_policy("cucb:schedule=power(0.1, 0.25),clip=true")[1]
    {'schedule': 'power(0.1, 0.25)', 'clip': True}
    """
    name, _, rest = spec.partition(":")
    entry = POLICIES.get(name.strip())
    if entry is None:
        raise ParameterError(unknown(f"policy = {name!r} is not known", name, POLICIES))
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in _COMMA.split(rest))):
        key, equals, text = part.partition("=")
        key = key.strip()
        if not equals:
            raise ParameterError(f"policy {spec!r}: {part!r} has no value; write {key}=VALUE")
        if key not in entry.options:
            told = f"policy {spec!r}: {part!r} is not an option of {entry.name}"
            raise ParameterError(unknown(told, key, entry.options))
        if key in options:
            raise ParameterError(f"policy {spec!r}: {key} is given twice")
        options[key] = _value(text.strip())
    return entry, options


def make_policy(
    spec: str,
    matroid: Matroid,
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy that `spec` describes, on `matroid`; `context` fills in what the spec leaves open.

    >>> from semibandit import Uniform
    >>> make_policy("cucb:engine=resolve", Uniform(n_arms=5, rank=2))
    CUCB(Uniform(n_arms=5, rank=2), engine='resolve', clock='exact', t=0)
    >>> make_policy("faster-cucb", Uniform(n_arms=5, rank=2), context={"horizon": 1000}).horizon
    1000
    """
    entry, options = parse_policy(spec)
    return build_policy(entry.name, options, matroid, reward_range, seed, context, label=spec)


def build_policy(
    name: str,
    options: Mapping[str, Any],
    matroid: Matroid,
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
    label: str | None = None,
) -> Policy:
    """The policy `name` of the catalogue with `options`; see `make_policy`. Errors call it `label`."""
    entry = POLICIES.get(name)
    if entry is None:
        raise ParameterError(unknown(f"policy = {name!r} is not known", name, POLICIES))
    for key in options:
        if key not in entry.options:
            raise ParameterError(unknown(f"policy {name!r} has no option {key!r}", key, entry.options))
    parameters = inspect.signature(entry.factory).parameters
    given = dict(options)
    for key, value in {**(context or {}), "seed": seed}.items():
        if key in parameters:
            given.setdefault(key, value)
    missing = [
        key
        for key, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty and key not in given and key != "matroid"
    ]
    if missing:
        raise ParameterError(f"policy {name!r} needs {missing[0]}: write {name}:{missing[0]}=...")
    try:
        return entry.factory(matroid, reward_range=reward_range, **given)
    except (TypeError, ParameterError) as error:
        # An option of the wrong kind, such as a word where a number belongs. Which policy is meant must be said.
        raise ParameterError(f"policy {(label or name)!r}: {error}") from None
