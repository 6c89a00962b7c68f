"""Programs that talk to the decision service: typed, and safe to retry (extra ``serve``).

With a service at its usual address, five lines decide and learn::

    from semibandit.client import Client

    with Client("http://127.0.0.1:8080") as service:
        decision = service.select()
        service.reward(decision, [1.0] * len(decision.arms))

`Client` blocks, `AsyncClient` awaits; both have the same methods. Requests that were not answered, or answered with
429, 502, 503 or 504, are sent again after a while. Rewards of a decision count once by themselves, selects and other
rewards carry an idempotency key: nothing is done twice. Deleting what a lost answer had deleted already is an error
(404, 409).
"""

from __future__ import annotations

from semibandit.client.calls import Decision, Operation, Result, ServiceError
from semibandit.client.clients import AsyncClient, Client
from semibandit.serve.wire import ArmList, ArmStatistics, Learnt, PolicyAnswer, PolicySpec

__all__ = [
    "ArmList",
    "ArmStatistics",
    "AsyncClient",
    "Client",
    "Decision",
    "Learnt",
    "Operation",
    "PolicyAnswer",
    "PolicySpec",
    "Result",
    "ServiceError",
]
