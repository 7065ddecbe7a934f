"""What verdicts, states, stages and flags are called on pages, and what to do about them."""

HEADLINES = {
    "received": "Received",
    "queued": "Waiting in line",
    "building": "A host has it and is getting ready",
    "running": "Being judged",
    "cancelled": "Cancelled",
    "correct": "Correct",
    "incorrect": "Wrong answer",
    "contract_error": "The result has the wrong form",
    "build_error": "It does not build",
    "runtime_error": "It failed while running",
    "timeout": "It did not finish",
    "out_of_memory": "It ran out of memory",
    "rejected": "Rejected by the integrity checks",
    "infra_error": "Our fault: it could not be judged",
}

TONES = {
    "received": "info",
    "queued": "info",
    "building": "info",
    "running": "info",
    "cancelled": "warn",
    "correct": "good",
    "infra_error": "warn",
    "incorrect": "bad",
    "contract_error": "bad",
    "build_error": "bad",
    "runtime_error": "bad",
    "timeout": "bad",
    "out_of_memory": "bad",
    "rejected": "bad",
}

# By code where one code has its own remedy, else by verdict.
ADVICE = {
    "incorrect": "Compare the first wrong element below with your own run, rank by rank. A missing or doubled "
    "collective shows as a factor, a stale buffer as the previous call's values.",
    "incorrect.nonfinite": "Look for a division by zero, an overflow of a 16-bit sum, or memory never written.",
    "contract_error": "Check number, order, shape and dtype of what `solution` returns against the problem page.",
    "contract_error.signature": "Let `solution` take exactly the arguments that the problem page lists, in that order.",
    "contract_error.input_modified": "Clone what you write to, unless the problem marks it as in-out or scratch.",
    "contract_error.no_solution": "Define `solution` at the top level of the file, whatever the machine: not inside an "
    "`if` that this target does not take.",
    "contract_error.shared_memory": "Return no argument and no view of one where the reference does not.",
    "build_error": "Change what is named above; if a compiler ran, its output is in the log.",
    "build_error.compiler": "The compiler's first error is above; the whole output is in the log.",
    "build_error.needs_cuda": "No compiler ran. A target without cards takes C++ only; one with cards compiles "
    "what the file builds at its top, while it is imported.",
    "runtime_error": "The log below ends with what the ranks wrote last, after a crash the lines that led there.",
    "runtime_error.host_fault_repeated": "There is no log: no run came to an end. If the file leaves all that alone, "
    "tell us the id.",
    "runtime_error.exception": "The whole traceback is in the log below.",
    "timeout": "All ranks must enter the same collectives in the same order. The stacks below show where each waits.",
    "out_of_memory": "Free or reuse intermediate tensors, or work in slices.",
    "rejected": "Read the rules under Docs.",
    "infra_error": "Nothing was counted or charged to you. Send it again; if it happens twice, tell us the id.",
    "cancelled": "Send it again whenever you like.",
}

# In the order in which a judge reports them.
STAGES = {
    "received": "picked up",
    "building": "building",
    "starting": "starting ranks",
    "correctness": "correctness",
    "warmup": "warm-up",
    "timing": "timing",
    "profiling": "profiling",
    "reporting": "reporting",
}

BACKENDS = {"cuda": "CUDA", "triton": "Triton", "cpp": "C++"}

FLAGS = {
    "below_resolution": "The call is too short to be told from the cost of starting it: counted as a tie.",
    "unranked_protocol": "Feedback only: this mode never enters a board.",
    "untimed_target": "This target measures no times: correctness only, and no place on a board.",
    "built_late": "It builds code at call time: compiled before the clock, but not kept for the next time.",
    "noisy": "The machine was unsteady while this was measured. On cards such a score enters no board; on cpu4 it "
    "enters as no faster than the reference.",
    "below_floor": "Faster than the links can carry what every correct call must exchange: a person should look.",
    "launch_bound": "The device was idle for more than half of the call.",
}

UNSTEADY = {
    "drift": "the reference alone took another time after it than before it",
    "slowed": "the reference was far slower in turn with the submission than alone",
    "disturbed": "the submission's processes were at work, or freed memory, while the reference was timed",
    "rounds_differ": "an earlier round, spoilt by something that a file can bring about, had read a lower speedup",
    "below_floor": "it was faster than the links can carry what the call must exchange",
}
"""Why a round of measurement does not count."""

GRADES = {
    "full": "own sandbox, freezer and limits",
    "partial": "sandboxed, without freezer, limits or walls between ranks",
    "none": "not sandboxed: bundled samples only",
}
