"""How the service says no: a status, what is wrong with which field, and the promise that nothing was changed."""

from __future__ import annotations

from typing import Any

from semibandit.errors import SemibanditError


class Refusal(SemibanditError):
    """A request that cannot be served. Whoever raises it has changed nothing.

    `status`: as in HTTP. `code`: a word for programs. `field` and `value`: what is wrong where, if one thing is.
    """

    def __init__(
        self, status: int, code: str, message: str, *, field: str | None = None, value: Any = None
    ) -> None:
        super().__init__(message)
        #: What is known of the request, where it was refused before anything else was.
        self.door: Any = None
        self.status, self.code, self.message, self.field, self.value = status, code, message, field, value


class ReplayError(SemibanditError):
    """The log does not lead where it led when it was written; nothing was served from it."""


def no_policy(name: Any) -> Refusal:
    """404 for a policy that is not there."""
    return Refusal(404, "no_policy", f"policy {name!r} is not known here", field="policy", value=name)


def no_decision(decision: Any, policy: str) -> Refusal:
    """404 for a decision that was never made."""
    told = f"decision {decision!r} was not made by policy {policy!r}"
    return Refusal(404, "no_decision", told, field="decision", value=decision)


def too_late(decision: Any) -> Refusal:
    """410 for a decision past its time to live."""
    told = f"decision {decision!r} is past its time to live: its feedback is no longer taken"
    return Refusal(410, "expired", told, field="decision", value=decision)


def bad(field: str, value: Any, message: str) -> Refusal:
    """422 for a value that makes no sense."""
    return Refusal(422, "bad_value", message, field=field, value=value)
