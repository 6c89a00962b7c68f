"""`semibandit serve`: a service that decides and learns over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semibandit.cli.options import MatroidName

if TYPE_CHECKING:
    from semibandit.serve.restoring import Started
    from semibandit.serve.service import Service
    from semibandit.serve.settings import Settings


@click.command("serve")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--matroid", type=MatroidName(), default="uniform", show_default=True)
@click.option("--arms", type=click.IntRange(1), help="Number of arms K; without FILE it must be given.")
@click.option("--rank", type=click.IntRange(1), default=10, show_default=True, help="Size D of a base.")
@click.option(
    "--policy", metavar="NAME[:OPTION=VALUE,...]", default="cucb", show_default=True, help="As in `run`."
)
@click.option("--name", default="default", show_default=True, help="What the policy is called in addresses.")
@click.option("--shards", type=click.IntRange(1), help="Spread the arms over so many shards.")
@click.option(
    "--on",
    metavar="WHERE",
    default="local",
    show_default=True,
    help="Where shards live: local, ray, ray://host:port.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--ttl", type=click.FloatRange(0, min_open=True), help="Seconds to wait for rewards.  [3600]")
@click.option("--data", metavar="FOLDER", help="Log and snapshots.  [default: state]")
@click.option(
    "--store",
    metavar="ADDRESS",
    envvar="SEMIBANDIT_STORE",
    help="postgresql://user@host/database instead of files in --data; also $SEMIBANDIT_STORE.",
)
@click.option("--standby", is_flag=True, help="With --store: wait, and take over when the leader is gone.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes a free one.  [default: 8080]")
@click.option(
    "--tokens", metavar="FILE", help="Hashed bearer tokens; without them only this machine is served."
)
@click.option("--log-requests", is_flag=True, help="One line of JSON per request on the error stream.")
@click.option(
    "--new-token", metavar="ROLE", help="Print a token (read, play, admin) and its line for --tokens."
)
@click.option("--check", is_flag=True, help="Only say whether the settings are right.")
@click.pass_context
def command(
    ctx: click.Context, /, file: Path | None, new_token: str | None, check: bool, **given: Any
) -> None:
    """Serve policies over HTTP, every acknowledged reward on disk.

    FILE is a TOML file with the tables [server], [limits], [upkeep] and [policies.NAME] (docs/service.md). Without it
    one policy is served. Stop it with Ctrl-C or SIGTERM; the same command goes on where it was, also after a crash.

    \b
    semibandit serve --matroid uniform --arms 1000000 --rank 10 --policy cts --data state/
    semibandit serve service.toml
    curl -X POST http://127.0.0.1:8080/v1/policies/default/select -H 'content-type: application/json' -d '{}'
    """
    from semibandit.cli.files import need

    need("uvicorn", "serve")
    need("msgspec", "serve")
    if new_token is not None:
        _print_token(new_token)
        return
    settings = _settings(ctx, file, given)
    settings.check()
    if check:
        click.echo(f"right: {len(settings.policies)} policies, {settings.server.host}:{settings.server.port}")
        return
    from semibandit.serve.run import run

    run(settings, _greet)


def _print_token(role: str) -> None:
    from semibandit.checks import one_of
    from semibandit.serve.tokens import ROLES
    from semibandit.serve.tokens import new_token as make

    token, line = make(one_of(role, "--new-token", ROLES))
    click.echo(f"token (for the client, shown once): {token}")
    click.echo(f"line for the file of --tokens:      {line}")


def _settings(ctx: click.Context, file: Path | None, given: dict[str, Any]) -> Settings:
    """What the file says, and what options say in its place."""
    from semibandit.errors import ParameterError
    from semibandit.policies.catalogue import parse_policy
    from semibandit.serve.settings import Settings, read_settings
    from semibandit.serve.wire import PolicySpec

    if file is not None:
        source = ctx.get_parameter_source
        for name in ("matroid", "arms", "rank", "policy", "name", "shards", "on", "seed", "ttl"):
            if source(name) is click.core.ParameterSource.COMMANDLINE:
                raise ParameterError(f"--{name} does not go with a file: say it in {file}")
        settings = read_settings(file)
    else:
        if given["arms"] is None:
            raise ParameterError("give --arms (or a file): semibandit serve --arms 1000000 --rank 10")
        entry, options = parse_policy(given["policy"])
        spec = PolicySpec(
            policy=entry.name,
            options=options,
            matroid={"kind": given["matroid"], "arms": given["arms"], "rank": given["rank"]},
            seed=given["seed"],
            shards=given["shards"],
            on=given["on"],
        )
        if given["ttl"] is not None:
            spec.ttl = given["ttl"]
        settings = Settings(policies={given["name"]: spec})
    for name in ("data", "store", "host", "port", "tokens"):
        if given[name] is not None:
            setattr(settings.server, name, given[name])
    if given["standby"]:
        settings.server.standby = True
    if given["log_requests"]:
        settings.server.log_requests = True
    return settings


def _greet(service: Service, started: Started, address: str) -> None:
    """Say what is served, where, and from what."""
    lines = [f"semibandit serves {len(service.host.seats)} policies at {address}"]
    for name, seat in service.host.seats.items():
        policy = seat.policy
        lines.append(f"  {name}: {policy.name} on {policy.matroid!r}, round {policy.t:,}")
    begun = "no snapshot" if started.snapshot is None else f"the snapshot of event {started.snapshot:,}"
    lines.append(
        f"state in {service.store.where}: from {begun}, {started.replayed:,} events replayed "
        f"({started.seconds:.2f} s)"
    )
    click.echo("\n".join(lines), err=True)
