"""What requests and answers are made of: the types that decode the one, encode the other, and write the OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from semibandit.serve.refusals import Refusal

Arms = Annotated[list[Any], Meta(description="Arm numbers, or labels where the policy has them.")]
Key = Annotated[str, Meta(min_length=1, max_length=200, description="Idempotency key of the client's own.")]
Count = Annotated[int, Meta(ge=1, description="Make so many decisions at once.")]


class Made(Struct, gc=False):
    """Decisions: the id of each, its arms as clients call them, and its round."""

    decision: str
    arms: list[Any]
    round: int


class Learnt(Struct, gc=False):
    """What became of rewards: counted now, counted before, too late for a label that is gone; arms that still wait."""

    counted: int
    duplicates: int
    dropped: int
    waiting: int


class PolicySpec(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A policy: either over the arms of a `matroid`, by number, or over a `catalog` of labels.

    `matroid`: ``{"kind": "uniform", "arms": 1000, "rank": 10}``, or the keys of experiment files for other kinds.
    `catalog`: ``{"kind": "partition", "quotas": {"news": 1, "sport": 2}, "labels": [["vote", "news"], ...]}``.
    """

    policy: str = "cucb"
    matroid: dict[str, Any] | None = None
    catalog: dict[str, Any] | None = None
    options: dict[str, Any] = {}
    reward_range: tuple[float, float] = (0.0, 1.0)
    objective: str = "max"
    seed: int = 0
    #: Arms are spread over so many shards (`semibandit.distributed`), which live `on`: "local", in this process;
    #: "ray", a cluster (that of RAY_ADDRESS, or one of this machine); or, in a file only, the address of one.
    shards: int | None = None
    on: str = "local"
    #: Seconds for which rewards of a decision (and idempotency keys) are taken; None for ever.
    ttl: float | None = 3600.0
    #: Decisions that are kept at most; the oldest then leave before their time.
    max_pending: int = 1_000_000
    #: Idempotency keys that are kept at most, the youngest ones.
    max_keys: int = 200_000

    def most_arms(self) -> int:
        """Arms of kept decisions at most."""
        return 16 * self.max_pending

    def ttl_microseconds(self) -> int | None:
        """`ttl` as the log counts time."""
        return None if self.ttl is None else round(self.ttl * 1e6)


class SelectRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Ask for a decision: avoid `exclude`, choose only `among` these."""

    exclude: Arms | None = None
    among: Arms | None = None
    count: Count | None = None
    key: Key | None = None


class RewardsRequest(Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Rewards: of a `decision` (all its arms in their order, or those in `arms`), or of `arms` with a `key`."""

    rewards: list[float]
    decision: str | None = None
    arms: Arms | None = None
    key: Key | None = None


class SelectOperation(SelectRequest, tag_field="op", tag="select", kw_only=True):
    """A select in a batch."""

    policy: str


class RewardsOperation(RewardsRequest, tag_field="op", tag="rewards", kw_only=True):
    """Rewards in a batch."""

    policy: str


class BatchRequest(Struct, forbid_unknown_fields=True):
    """Several operations, done in order; each stands for itself."""

    operations: list[SelectOperation | RewardsOperation]


class ArmsRequest(Struct, forbid_unknown_fields=True):
    """Arms to delete or insert; for labels, what is told of each new one (category, ends, tasks)."""

    arms: Arms
    attributes: list[Any] | None = None


class CreateRequest(PolicySpec, forbid_unknown_fields=True, kw_only=True):
    """A policy to create."""

    name: str


class Decisions(Struct):
    """Several decisions."""

    decisions: list[Made]


class Problem(Struct, omit_defaults=True):
    """Why a request was refused: nothing was changed."""

    status: int
    error: str
    message: str
    field: str | None = None
    value: Any = None
    request_id: str | None = None


class BatchAnswer(Struct):
    """One result per operation, in order: a decision, several, what became of rewards, or a `Problem`."""

    results: list[Any]


class ArmStatistics(Struct):
    """What is known of an arm; null where nothing is."""

    arm: Any
    count: int
    mean: float | None
    low: float | None
    high: float | None
    index: float | None
    present: bool


class ArmList(Struct):
    """Some arms, and how many there are."""

    total: int
    arms: list[ArmStatistics]


class PolicyAnswer(Struct):
    """A policy and how it stands."""

    name: str
    spec: PolicySpec
    n_arms: int
    rank: int
    round: int
    rewards: int
    reward_sum: float
    pending: int
    expired: int
    about: dict[str, Any]


class PolicyList(Struct):
    """All policies."""

    policies: list[PolicyAnswer]


class Done(Struct):
    """It is done, and on disk."""

    ok: bool = True


class SnapshotAnswer(Struct):
    """How many events the snapshot covers."""

    position: int


class Health(Struct, omit_defaults=True):
    """Whether requests are served, and if not, why."""

    ok: bool
    reason: str | None = None


def problem(error: Refusal, request_id: str | None) -> Problem:
    """A refusal as clients see it."""
    value = error.value
    if isinstance(value, float) and value != value:
        value = "NaN"
    elif not isinstance(value, (int, float, bool, type(None))):
        value = short(value)
    return Problem(error.status, error.code, error.message[:1000], error.field, value, request_id)


def short(value: Any) -> Any:
    """A value as messages show it."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


JSON, MSGPACK = "application/json", "application/msgpack"
_MSGPACK_TYPES = (b"application/msgpack", b"application/x-msgpack", b"application/vnd.msgpack")


def kind_of(content_type: bytes) -> str | None:
    """`JSON` or `MSGPACK`, None for anything else."""
    plain = content_type.split(b";", 1)[0].strip().lower()
    if plain == b"application/json":
        return JSON
    return MSGPACK if plain in _MSGPACK_TYPES else None


class Codec:
    """Decodes one type from both formats."""

    def __init__(self, wanted: Any) -> None:
        self.json = msgspec.json.Decoder(wanted)
        self.msgpack = msgspec.msgpack.Decoder(wanted)


encode_json = msgspec.json.Encoder().encode
encode_msgpack = msgspec.msgpack.Encoder(enc_hook=lambda value: value.item()).encode
