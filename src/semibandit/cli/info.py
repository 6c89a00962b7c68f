"""`semibandit info`: what is installed and what runs where."""

from __future__ import annotations

import platform

import click


@click.command("info")
@click.option(
    "--kernels", is_flag=True, help="List the kernels that were compiled ahead of time, and no more."
)
def command(kernels: bool) -> None:
    """Show versions, compiled kernels, cores, engines, policies and optional extras."""
    if kernels:
        _list_kernels()
        return
    from semibandit.engines import ENGINES
    from semibandit.machine import cores, package_version
    from semibandit.policies.catalogue import POLICIES
    from semibandit.text import table

    for label, value in (
        ("semibandit", package_version("semibandit") or "not installed as a package"),
        ("python", f"{platform.python_version()} ({platform.system()}, {platform.machine()})"),
        ("numpy", package_version("numpy")),
        ("numba", package_version("numba")),
        ("cores", f"{cores()} usable; everything runs in one thread"),
        *_kernels(),
    ):
        click.echo(f"{label:<12}{value}")

    click.echo("\nEngines (all make the same decisions; engine='auto' takes the fastest)")
    rows = [
        (spec.name, ", ".join(spec.serves) or "every matroid", " ".join(spec.clocks), spec.cost)
        for spec in ENGINES.values()
    ]
    click.echo(table(("name", "serves", "clocks", "cost"), rows, left=4))

    click.echo(f"\nPolicies: {', '.join(POLICIES)}")
    click.echo("(see `semibandit policies`)")

    click.echo("\nExtras")
    for extra, packages in (
        ("plot", ("matplotlib",)),
        ("results", ("polars",)),
        ("pandas", ("pandas",)),
        ("dev", ("scipy", "networkx")),
    ):
        found = {name: package_version(name) for name in packages}
        missing = [name for name, have in found.items() if have is None]
        state = ", ".join(f"{name} {have}" for name, have in found.items() if have is not None)
        if missing:
            hint = f"missing: {', '.join(missing)}; get it with `pip install semibandit[{extra}]`"
            state = f"{state}; {hint}" if state else hint
        click.echo(f"{extra:<12}{state}")


def _kernels() -> list[tuple[str, str]]:
    """Where compiled kernels come from, as lines (label, text). Imports no compiler."""
    from semibandit.compiled import native, sources

    module = native.module()
    if native.forced():
        ahead = "left aside: the compiler was asked for (SEMIBANDIT_JIT or bounds checks)"
    elif module is None:
        ahead = "none: built without a C compiler, so kernels are compiled when they are first used"
    else:
        ahead = (
            f"{len(native.ahead_of_time())} kernels compiled when the package was built, for {module.level}"
        )
        if module.sources != sources.all_sources():
            ahead += "; sources changed since, so some are compiled again here (`make kernels` renews them)"
    return [("ahead", ahead), *_cached_kernels()]


def _list_kernels() -> None:
    from semibandit.compiled import native

    names = native.ahead_of_time()
    for name in names:
        click.echo(name)
    if not names:
        raise click.ClickException("no kernel was compiled ahead of time")


def _cached_kernels() -> list[tuple[str, str]]:
    """Kernels that were compiled on this machine, for any version of the compiler and any settings."""
    from semibandit.compiled.jit import cache_parents

    for parent in cache_parents():
        kept = [path for path in parent.glob("kernels-*/**/*.nbc") if path.is_file()]
        if kept:
            size = sum(path.stat().st_size for path in kept) / 2**20
            return [("kernels", f"{len(kept)} compiled here and kept ({size:.1f} MiB) in {parent}")]
    return [
        ("kernels", "none compiled here yet"),
        ("", "the first run compiles what it needs; set SEMIBANDIT_CACHE_DIR to keep it elsewhere"),
    ]
