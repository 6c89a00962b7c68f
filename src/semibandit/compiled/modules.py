"""Which kernels are compiled ahead in one module of LLVM, and making one of all that they need.

Imports LLVM: for `ahead` alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import llvmlite.binding as ll

#: Into how many modules a process puts what it learnt. What two of them need is compiled in both.
_MODULES = 4


def together(needs: dict[str, list[Any]], sizes: dict[Any, int]) -> list[list[str]]:
    """Symbols in `_MODULES` lists of about one size, or one more, such that those that need the same are in one.

    `needs`: the libraries of each symbol. The largest symbol begins a list, and those that have most in common with it
    follow, until it is large enough.
    """

    def size(libraries: Iterable[Any]) -> int:
        return sum(sizes[library] for library in libraries)

    enough = size(sizes) / _MODULES
    left = sorted(needs, key=lambda symbol: -size(needs[symbol]))
    lists = []
    while left:
        here: list[str] = []
        there: set[Any] = set()
        while left and size(there) < enough:
            nearest = max(
                left, key=lambda symbol: size(there.intersection(needs[symbol])) / size(needs[symbol])
            )
            left.remove(nearest)
            here.append(nearest)
            there.update(needs[nearest])
        lists.append(here)
    return lists


def to_keep(code: bytes) -> Any:
    """The module of this code, so that it stays wherever it is linked, also if nothing calls it yet."""
    module = ll.parse_bitcode(code)
    for function in module.functions:
        if not function.is_declaration and function.linkage == ll.Linkage.linkonce_odr:
            function.linkage = "weak_odr"
    return module


def ways_in(callers: dict[str, str]) -> Any:
    """A module with a function for each symbol, which calls the one that it stands for."""
    lines = [f'target triple = "{ll.get_process_triple()}"']
    lines += [f'declare i32 @"{inner}"(ptr, ptr, i64)' for inner in dict.fromkeys(callers.values())]
    for symbol, inner in callers.items():
        lines.append(
            f"""
            define i32 @{symbol}(ptr %answer, ptr %error, i64 %slots) {{
              %status = call i32 @"{inner}"(ptr %answer, ptr %error, i64 %slots)
              ret i32 %status
            }}"""
        )
    return ll.parse_assembly("\n".join(lines))


def link(modules: list[Any]) -> Any:
    """All of them in one, two and two: LLVM goes through the whole of a module whenever something is linked to it."""
    while len(modules) > 1:
        for one, other in zip(modules[::2], modules[1::2], strict=False):
            one.link_in(other)
        modules = modules[::2]
    return modules[0]
