"""What one request, and all policies together, may ask for."""

from __future__ import annotations

import msgspec

from semibandit.serve.refusals import bad


class Limits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What one request, and all policies together, may ask for."""

    #: Policies at once.
    policies: int = 100
    #: Arms of a policy.
    arms: int = 10_000_000
    #: Arms named in one request, and decisions made by one.
    arms_per_request: int = 10_000
    decisions_per_request: int = 1_000
    #: Operations in one batch.
    batch: int = 1_000
    #: Bytes of a request's body.
    body: int = 4_000_000


_LETTERS = set("abcdefghijklmnopqrstuvwxyz0123456789-_.")


def check_name(name: str) -> None:
    """A 422 unless `name` can be one of a policy: it stands in addresses and in labels of metrics."""
    if not 1 <= len(name) <= 64 or not set(name) <= _LETTERS or not name[0].isalnum():
        told = f"name = {name!r}: 1 to 64 of a-z, 0-9, '-', '_' and '.', a letter or digit first"
        raise bad("name", name, told)
