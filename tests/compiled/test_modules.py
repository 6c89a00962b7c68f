"""Modules that are compiled ahead: who is in which one, and that linking loses nothing."""

from __future__ import annotations

import llvmlite.binding as ll
import numpy as np
import pytest

from semibandit.compiled.modules import link, to_keep, together, ways_in


@pytest.mark.parametrize("seed", range(5))
def test_every_symbol_is_in_one_list_and_lists_are_of_one_size(seed):
    rng = np.random.default_rng(seed)
    sizes = {f"library {i}": int(rng.integers(1, 100)) for i in range(60)}
    needs = {
        f"s{i}": rng.choice(list(sizes), int(rng.integers(1, 9)), replace=False).tolist() for i in range(80)
    }
    sizes = {library: sizes[library] for libraries in needs.values() for library in libraries}
    lists = together(needs, sizes)
    assert sorted(symbol for one in lists for symbol in one) == sorted(needs)
    most = sum(sizes.values()) / 4 + max(sum(sizes[library] for library in parts) for parts in needs.values())
    for one in lists:
        assert (
            sum(sizes[library] for library in {library for symbol in one for library in needs[symbol]})
            <= most
        )


def test_those_that_need_the_same_are_together():
    families = {f"s{i}": [f"big {i % 4}", f"own {i}"] for i in range(12)}
    sizes = {library: 1000 if "big" in library else 1 for parts in families.values() for library in parts}
    lists = together(families, sizes)
    for family in range(4):
        homes = {i for i, one in enumerate(lists) for symbol in one if int(symbol[1:]) % 4 == family}
        assert len(homes) == 1


def test_linking_keeps_what_nobody_calls_yet():
    modules = []
    for i in range(7):
        below = f'declare i32 @"f{i + 1}"(ptr, ptr, i64)' if i < 6 else ""
        call = f'%r = call i32 @"f{i + 1}"(ptr %a, ptr %e, i64 %s)' if i < 6 else "%r = add i32 0, 7"
        text = f'{below}\ndefine linkonce_odr i32 @"f{i}"(ptr %a, ptr %e, i64 %s) {{\n{call}\nret i32 %r\n}}'
        modules.append(to_keep(ll.parse_assembly(text).as_bitcode()))
    whole = link([*modules[::-1], ways_in({"way": "f0", "other": "f3"})])
    defined = {function.name for function in whole.functions if not function.is_declaration}
    assert defined == {f"f{i}" for i in range(7)} | {"way", "other"}
    whole.verify()
