"""The `upstream` input set: public seeds and the published scripts' tolerance, as a label only.

Five trials on the values that the published generator makes, compared with the reference's outputs as
floats at atol = rtol = 1e-2. Never timed, never ranked; what it finds can't change a verdict. It lets
published numbers be compared with ours.
"""

from __future__ import annotations

from typing import Any

import torch

from evaluator.harness import claims, encode
from evaluator.harness.cases import Call
from evaluator.harness.errors import JudgeFault
from evaluator.harness.job import Turn
from evaluator.harness.protocol import Session, Verdicted, answers_of
from problems.leaves import tensors

TRIALS = 5
TOLERANCE = 1e-2


def run(session: Session) -> dict[str, Any] | None:
    """{"verdict", "trials", "atol", "rtol"}; None where the problem has no such values at this size."""
    builder = getattr(session.problem.module("inputs"), "upstream", None)
    if builder is None:
        return None
    size = session.problem.namespace(session.cases.size)
    state = torch.get_rng_state()
    facts: dict[str, Any] = {"verdict": "correct", "trials": 0, "atol": TOLERANCE, "rtol": TOLERANCE}
    try:
        for trial in range(TRIALS):
            args = builder(size, session.cases.world_size, trial)
            call = Call(-1 - trial, args, [encode.pack(rank) for rank in args])
            theirs = session.run_reference(call)
            mine = session.run_submission(call, session.limit)
            facts["trials"] = trial + 1
            if not _close(mine, theirs):
                facts["verdict"] = "incorrect"
                break
    except Verdicted as known:
        facts["verdict"] = known.found.verdict
    except JudgeFault:
        return None  # a label is not worth a fault: the hardened set has judged
    finally:
        torch.set_rng_state(state)
    return facts


def _close(mine: Turn, theirs: Turn) -> bool:
    """As the published scripts compare: `allclose` of float casts, shapes equal, dtypes ignored."""
    for claim, expected, data in zip(mine.claims, theirs.claims, mine.outputs, strict=True):
        # Nobody has compared these claims yet: what they state may be more than was delivered.
        if claims.difference(claim, expected, any_dtype=True) or claims.nbytes(claim) > data.numel():
            return False
    for got, want in zip(answers_of(mine), answers_of(theirs), strict=True):
        for (_, left), (_, right) in zip(tensors(got.output), tensors(want.output), strict=True):
            wide = torch.complex128 if right.is_complex() else torch.float64
            if not torch.allclose(left.to(wide), right.to(wide), TOLERANCE, TOLERANCE, equal_nan=True):
                return False
    return True
