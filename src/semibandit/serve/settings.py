"""What a service is told before it starts: a TOML file, or the options of the command."""

from __future__ import annotations

import ipaddress
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from semibandit.errors import ParameterError
from semibandit.serve.keeper import Upkeep
from semibandit.serve.limits import Limits, check_name
from semibandit.serve.refusals import Refusal
from semibandit.serve.specs import check_spec
from semibandit.serve.wire import PolicySpec


class ServerSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where the service listens, and where it keeps what it must not lose."""

    host: str = "127.0.0.1"
    port: int = 8080
    #: The folder of log and snapshots.
    data: str = "state"
    #: Where the log is kept: "sqlite" (in `data`), or the address of another store.
    store: str = "sqlite"
    #: A file of hashed tokens; without one only this machine is served.
    tokens: str | None = None
    #: Tell every request in the log of the process.
    log_requests: bool = False
    #: Seconds that a client may take to send a request, and that an idle connection is kept.
    request_timeout: float = 10.0
    keep_alive: float = 75.0
    #: Seconds for requests under way when the service is told to stop.
    drain: float = 10.0


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All of it."""

    server: ServerSettings = msgspec.field(default_factory=ServerSettings)
    limits: Limits = msgspec.field(default_factory=Limits)
    upkeep: Upkeep = msgspec.field(default_factory=Upkeep)
    policies: dict[str, PolicySpec] = {}

    def check(self) -> None:
        """A `ParameterError` for what cannot be served."""
        if not 0 <= self.server.port < 65536:
            raise ParameterError(f"port = {self.server.port} must be in 0 .. 65535")
        if self.server.tokens is None and not is_loopback(self.server.host):
            raise ParameterError(
                f"host = {self.server.host!r} can be reached from other machines: give tokens (a file of hashed "
                "tokens, semibandit serve --new-token admin makes one), or listen on 127.0.0.1"
            )
        if self.upkeep.snapshots < 1 or self.upkeep.snapshot_events < 1:
            raise ParameterError("upkeep: snapshots and snapshot_events must be at least 1")
        for name, spec in self.policies.items():
            try:
                check_name(name)
                check_spec(spec, self.limits.arms)
            except Refusal as error:
                raise ParameterError(f"policy {name!r}: {error.message}") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(path: Path) -> Settings:
    """The settings in a TOML file; a `ParameterError` names the key of a mistake."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path}: {error}") from None
    try:
        found = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise ParameterError(f"{path}: {error}") from None
    found.check()
    return found
