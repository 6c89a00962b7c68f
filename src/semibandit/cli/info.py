"""`semibandit info`: what is installed and what runs where."""

from __future__ import annotations

import platform

import click


@click.command("info")
def command() -> None:
    """Show versions, the kernel cache, threads, engines, policies and optional extras."""
    import numba

    from semibandit.compiled import jit as _jit
    from semibandit.engines import ENGINES
    from semibandit.machine import cores, package_version
    from semibandit.policies.catalogue import POLICIES
    from semibandit.text import table

    for label, value in (
        ("semibandit", package_version("semibandit") or "not installed as a package"),
        ("python", f"{platform.python_version()} ({platform.system()}, {platform.machine()})"),
        ("numpy", package_version("numpy")),
        ("numba", package_version("numba")),
        ("cores", f"{cores()} usable; {numba.config.NUMBA_NUM_THREADS} threads for parallel kernels"),
    ):
        click.echo(f"{label:<12}{value}")
    kernels = (
        [path for path in _jit.cache_directory().rglob("*.nbc")] if _jit.cache_directory().is_dir() else []
    )
    size = sum(path.stat().st_size for path in kernels) / 2**20
    click.echo(f"{'kernels':<12}{len(kernels)} cached ({size:.1f} MiB) in {_jit.cache_directory()}")
    if not kernels:
        click.echo(f"{'':<12}the first run compiles them; set SEMIBANDIT_CACHE_DIR to keep them elsewhere")

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
        ("dev", ("scipy", "networkx")),
    ):
        found = {name: package_version(name) for name in packages}
        missing = [name for name, have in found.items() if have is None]
        state = ", ".join(f"{name} {have}" for name, have in found.items() if have is not None)
        if missing:
            hint = f"missing: {', '.join(missing)}; get it with `pip install semibandit[{extra}]`"
            state = f"{state}; {hint}" if state else hint
        click.echo(f"{extra:<12}{state}")
