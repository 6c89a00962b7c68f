"""`semibandit warmup`: compile what was not compiled when the package was built, and keep it on disk."""

from __future__ import annotations

import click


@click.command("warmup")
@click.argument("only", default="")
def command(only: str) -> None:
    """Compile kernels now and not in the first request: useful in an image that is built once and started often.

    With kernels ahead of time (see `semibandit info`) little or nothing is left to do. ONLY takes just the lessons
    whose name has this text in it, for example "cts" or "on graphic".
    """
    import sys

    from tqdm import tqdm

    from semibandit.compiled import jit, native, training

    lessons = [(name, lesson) for name, lesson in training.lessons() if only in name]
    if not lessons:
        raise click.UsageError(f"no lesson has {only!r} in its name: try a policy or a matroid class")
    with tqdm(lessons, unit="lesson", disable=not sys.stderr.isatty()) as bar:
        for name, lesson in bar:
            bar.set_description(name)
            lesson()
    compiled = jit.compiled_now()
    ahead = len(native.ahead_of_time())
    where = f", kept in {jit.cache_directory()}" if compiled else ""
    click.echo(f"{ahead} kernels ahead of time; {compiled} compiled now{where}")
