"""Writes of the queue. Every move is a conditional UPDATE, so it is right on SQLite and PostgreSQL."""

from evaluator.services.artifacts import keep_artifact
from evaluator.services.baselines import record_baselines
from evaluator.services.hosts import (
    drain,
    quarantine,
    register_host,
    reinstate,
    reinstate_fit,
    retire_host,
    seen,
)
from evaluator.services.leases import Lease, heartbeat, lease, set_stage, wanted
from evaluator.services.outcomes import (
    announce,
    announce_missed,
    complete,
    fail_infra,
    reap,
    refuse_on_host,
    release,
    stop_cancelled,
)
from evaluator.services.rescores import order_rescore
from evaluator.services.triage import record_triage

__all__ = [
    "Lease",
    "announce",
    "announce_missed",
    "complete",
    "drain",
    "fail_infra",
    "heartbeat",
    "keep_artifact",
    "lease",
    "order_rescore",
    "quarantine",
    "reap",
    "record_baselines",
    "record_triage",
    "refuse_on_host",
    "register_host",
    "reinstate",
    "reinstate_fit",
    "release",
    "retire_host",
    "seen",
    "set_stage",
    "stop_cancelled",
    "wanted",
]
