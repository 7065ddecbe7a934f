"""Peak memory where no group of the kernel counts it."""

import os
import subprocess
import sys

from evaluator.harness.sandbox.processes import resident_peak


def test_the_peak_counts_what_was_given_back() -> None:
    code = "import sys; b = bytearray(64 << 20); del b; print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        alone = resident_peak([child.pid])
        assert resident_peak([child.pid, os.getpid()]) > alone > 64 << 20
        child.communicate(b"")
    assert resident_peak([child.pid]) == 0
