"""`semibandit info`: what is installed and what runs where."""

from __future__ import annotations

import json
import platform
from typing import Any

import click


@click.command("info")
@click.option(
    "--kernels", is_flag=True, help="List the kernels that were compiled ahead of time, and no more."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the lists.")
def command(kernels: bool, as_json: bool) -> None:
    """Show versions, compiled kernels, cores, engines, policies and optional extras."""
    if kernels:
        _list_kernels(as_json)
        return
    facts = _facts()
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    from semibandit.text import pip_install, table

    for label, value in (
        ("semibandit", facts["semibandit"]),
        ("python", f"{facts['python']} ({facts['system']}, {facts['architecture']})"),
        ("numpy", facts["numpy"]),
        ("numba", facts["numba"]),
        ("cores", f"{facts['cores']} usable; everything runs in one thread"),
        ("ahead", facts["kernels"]["ahead_of_time"]),
        ("kernels", facts["kernels"]["compiled_here"]),
    ):
        click.echo(f"{label:<12}{value}")

    click.echo("\nEngines (all make the same decisions; engine='auto' takes the fastest)")
    rows = [
        (one["name"], ", ".join(one["serves"]) or "every matroid", " ".join(one["clocks"]), one["cost"])
        for one in facts["engines"]
    ]
    click.echo(table(("name", "serves", "clocks", "cost"), rows, left=4))

    click.echo(f"\nPolicies: {', '.join(facts['policies'])}")
    click.echo("(see `semibandit policies`)")

    click.echo("\nExtras")
    for extra, packages in facts["extras"].items():
        missing = [name for name, have in packages.items() if have is None]
        state = ", ".join(f"{name} {have}" for name, have in packages.items() if have is not None)
        if missing:
            hint = f"missing: {', '.join(missing)}; get it with `{pip_install(extra)}`"
            state = f"{state}; {hint}" if state else hint
        click.echo(f"{extra:<12}{state}")


def _facts() -> dict[str, Any]:
    """All that is shown, as JSON can hold it."""
    from semibandit.engines import ENGINES
    from semibandit.machine import cores, package_version
    from semibandit.policies.catalogue import POLICIES
    from semibandit.text import EXTRAS

    extras: dict[str, dict[str, str | None]] = {}
    for package, extra in EXTRAS.items():
        extras.setdefault(extra, {})[package] = package_version(package)
    return {
        "semibandit": package_version("semibandit") or "not installed as a package",
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "numpy": package_version("numpy"),
        "numba": package_version("numba"),
        "cores": cores(),
        "kernels": {"ahead_of_time": _ahead(), "compiled_here": _cached()},
        "engines": [
            {
                "name": spec.name,
                "serves": list(spec.serves),
                "clocks": list(spec.clocks),
                "cost": spec.cost,
            }
            for spec in ENGINES.values()
        ],
        "policies": list(POLICIES),
        "extras": extras,
    }


def _ahead() -> str:
    """What was compiled when the package was built. Imports no compiler."""
    from semibandit.compiled import native, sources

    module = native.module()
    if native.forced():
        return "left aside: the compiler was asked for (SEMIBANDIT_JIT or bounds checks)"
    if module is None:
        return "none: built without a C compiler, so kernels are compiled when they are first used"
    told = f"{len(native.ahead_of_time())} kernels compiled when the package was built, for {module.level}"
    if module.sources != sources.all_sources():
        told += "; sources changed since, so some are compiled again here (`make kernels` renews them)"
    return told


def _cached() -> str:
    """Kernels that were compiled on this machine, for any version of the compiler and any settings."""
    from semibandit.compiled.jit import cache_parents

    for parent in cache_parents():
        kept = [path for path in parent.glob("kernels-*/**/*.nbc") if path.is_file()]
        if kept:
            size = sum(path.stat().st_size for path in kept) / 2**20
            return f"{len(kept)} compiled here and kept ({size:.1f} MiB) in {parent}"
    return "none compiled here yet; what is missing is compiled at first use (SEMIBANDIT_CACHE_DIR: where it is kept)"


def _list_kernels(as_json: bool) -> None:
    from semibandit.compiled import native

    names = native.ahead_of_time()
    if as_json:
        click.echo(json.dumps(list(names), indent=1))
        return
    for name in names:
        click.echo(name)
    if not names:
        raise click.ClickException("no kernel was compiled ahead of time")
