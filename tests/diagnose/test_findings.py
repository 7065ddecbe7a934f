"""Rules over a profile: small programs that do each thing and ones that do not, traced for real on one rank.

What needs a card is told from events named as an H200's profiler named them (research notes of the device probe).
"""

from __future__ import annotations

import importlib.util
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
import torch.distributed as dist

from evaluator.diagnose import findings, movement
from evaluator.diagnose.native_facts import NativeFacts
from evaluator.diagnose.timeline import timeline
from evaluator.diagnose.trace import CALL, MAX_CALLS, SETTLE, Event, Op, RankTrace, read
from evaluator.harness.looking import Look, packed
from evaluator.harness.rank import tracer


@pytest.fixture(scope="module", autouse=True)
def _group() -> Iterator[None]:
    """One rank, so that programs may call collectives."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def _triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests of this process have loaded, these programs use no Triton."""
    monkeypatch.setattr(tracer.TRITON, "ours", True)


def traced(body: str, folder: Path) -> list[RankTrace]:
    """The trace of a `solution` with this body, called as a rank calls it."""
    lines = ["import time", "import torch", "import torch.distributed as dist", "def solution(x):"]
    path = folder / "solution.py"
    path.write_text("\n".join([*lines, *(f"    {line}" for line in body.splitlines())]) + "\n")
    spec = importlib.util.spec_from_file_location("traced_solution", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.randn(300, 300)
    with torch.no_grad():
        return read([tracer.look(lambda: module.solution(x), warm=1, calls=2, detail=True)])


def kinds(body: str, folder: Path) -> dict[str, findings.Finding]:
    """The dearest of each kind: on a busy machine a pause of its own may be told beside what the program does."""
    return {f.kind: f for f in reversed(findings.find(traced(body, folder)))}


FIRST = 5
PLAIN = "y = x @ x\ndist.all_reduce(y)\nreturn y.relu()"

DOES = {
    "host_stall": ("y = x + 1\ntime.sleep(0.03)\nreturn y + 1", FIRST),
    "unread_result": ("y = x + 1\nz = torch.stack([x] * 40).bmm(torch.stack([x] * 40))\nreturn y", FIRST + 1),
    "data_dependent_shape": ("y = x[x > 0]\nreturn y + 1", FIRST),
    "precision_round_trip": (
        "y = x.expand(40, -1, -1).to(torch.bfloat16)\nz = y.reshape(-1).to(torch.float32)\nreturn z + 1",
        FIRST + 1,
    ),
}
DOES_NOT = {
    "host_stall": ["y = x\nfor _ in range(200): y = y @ x\nreturn y", PLAIN],
    "unread_result": [
        "y = x @ x\nz = torch.empty_like(y)\nz.copy_(y)\nreturn z",
        "y = x @ x\ndist.all_reduce(y)\nreturn x + 1",
        "y = x @ x\nreturn x + float(y.numpy()[0, 0])",
        "y = x @ x\nn = y.sum().item()\nreturn x + n",
        "x.add_(x @ x)\nreturn None",
    ],
    "data_dependent_shape": ["return torch.where(x > 0, x, 0.0)", "return x[torch.arange(3)]"],
    "precision_round_trip": [
        "return (x.to(torch.bfloat16) * 2).to(torch.float32)",
        "y = x.to(torch.bfloat16)\ndist.all_reduce(y)\nreturn y.to(torch.float32)",
        "y = x.to(torch.bfloat16)\ny.add_(1)\nreturn y.to(torch.float32)",
    ],
}


@pytest.mark.parametrize("kind", DOES)
def test_a_program_that_does_it_is_told_with_cost_and_line(kind: str, tmp_path: Path) -> None:
    body, line = DOES[kind]

    found = kinds(body, tmp_path)

    assert kind in found, found
    assert found[kind].line == line
    assert found[kind].cost_us > 0
    assert found[kind].share >= findings.LEAST_SHARE
    json.dumps(found[kind].shown())


def test_triton_that_the_profiler_loads_is_not_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's profiler loads it where it is installed. What a Triton kernel reads no log shows: rules are left out."""
    loads = tracer.traced

    def loading(*args: Any) -> Any:
        monkeypatch.setitem(sys.modules, "triton.runtime", tracer)
        return loads(*args)

    def told() -> list[bool]:
        return [
            read([tracer.look(lambda: torch.ones(2) + 1, warm=1, calls=1, detail=True)])[0].triton
            for _ in range(2)
        ]

    monkeypatch.setattr(tracer.TRITON, "ours", False)
    monkeypatch.delitem(sys.modules, "triton.runtime", raising=False)
    monkeypatch.setattr(tracer, "traced", loading)
    assert told() == [False, False]
    monkeypatch.setattr(tracer.TRITON, "ours", False)  # now as if the file had loaded it
    assert told() == [True, True]


@pytest.mark.parametrize(
    ("kind", "body"), [(kind, body) for kind, bodies in DOES_NOT.items() for body in bodies]
)
def test_a_program_that_does_not_is_not_told(kind: str, body: str, tmp_path: Path) -> None:
    traces = traced(body, tmp_path)
    ops = traces[0].ops
    assert ops

    if kind == "host_stall":  # the machine may stall it: what counts is that no line of it is long
        stalls = [f for f in findings.find(traces) if f.kind == kind]
        assert sum(f.cost_us for f in stalls) < 20_000
    elif kind == "unread_result":
        assert [ops[i].name for i in findings.unread(ops, traces[0].result)] == []
    elif kind == "precision_round_trip":
        assert findings.round_trips(ops) == []
    else:
        assert kind not in {f.kind for f in findings.find(traces)}


def test_the_stall_costs_what_was_slept(tmp_path: Path) -> None:
    stall = kinds(DOES["host_stall"][0], tmp_path)["host_stall"]

    assert stall.cost_us >= 29_000
    assert stall.share > 0.5


def test_nothing_is_called_unread_where_own_code_may_read_it(tmp_path: Path) -> None:
    traces = traced(DOES["unread_result"][0], tmp_path)

    assert "unread_result" not in {f.kind for f in findings.find(traces, native=True)}


def test_collectives_are_counted_by_kind(tmp_path: Path) -> None:
    body = "dist.all_reduce(x)\ndist.all_reduce(x)\nout = x.new_empty(300 * 300)\n"
    body += "dist.all_gather_into_tensor(out, x.reshape(-1))\nreturn out"

    found = movement.tell(traced(body, tmp_path), [], cards=False)

    rows = {row["name"]: row["calls"] for row in found["movement"]["collectives"]}
    assert rows == {"all_reduce": 2, "all_gather_into_tensor": 1}
    assert found["mechanisms"] == []
    assert found["movement"]["told"] == movement.ON_CPU


def test_only_known_collectives_are_named() -> None:
    """A trace is a rank's own word, and the names stand on a page that everybody sees."""
    events = [["cpu_op", f"c10d::my_words_{n}", 10.0 + n, 1.0, 7, {}] for n in range(50)]
    traces = read([card(["cpu_op", "c10d::allreduce_", 5.0, 1.0, 7, {}], *events)])
    found = movement.tell(traces, [], cards=False)["movement"]["collectives"]
    assert [row["name"] for row in found] == ["all_reduce"]


def test_the_timeline_shows_every_lane(tmp_path: Path) -> None:
    drawn = timeline(traced(DOES["host_stall"][0].replace("x + 1", "x @ x\ndist.all_reduce(y)"), tmp_path))

    assert drawn is not None
    assert {bar[2] for bar in drawn["bars"]} >= {"phase", "operator", "python", "collective"}
    assert all(bar[3] >= 0 and bar[3] + bar[4] <= drawn["call_us"] + 1 for bar in drawn["bars"])
    slept = max(bar[4] for bar in drawn["bars"] if bar[2] == "python")
    assert slept >= 29_000


def test_the_stored_trace_is_one_that_viewers_open(tmp_path: Path) -> None:
    whole = json.loads(zlib.decompress(packed(traced(PLAIN, tmp_path)), 31))

    rows = [row for row in whole["traceEvents"] if row["ph"] == "X"]
    assert {"aten::mm", "c10d::allreduce_"} <= {row["name"] for row in rows}
    assert all(row.keys() >= {"pid", "tid", "ts", "dur", "cat"} for row in rows)


# --- what only cards do: made-up events under the names that an H200's profiler used ---


def card(*events: list[Any], ops: list[dict[str, Any]] | None = None, base: int = 0) -> bytes:
    """A blob of one rank: a call of 1000 µs with these events, settled from 900 on."""
    call = ["user_annotation", f"{CALL} 0", 0.0, 1000.0, 7, {}]
    settle = ["user_annotation", SETTLE, 900.0, 100.0, 7, {}]
    log = {"ops": ops or [], "result": [], "whole": True, "triton": False}
    found = {"trace": {"base_ns": base, "events": [call, *events, settle]}, "log": log}
    return zlib.compress(json.dumps(found).encode())


def op(name: str, line: int) -> dict[str, Any]:
    return {"op": name, "line": line, "reads": [], "writes": [], "gives": []}


ITEM = [
    ["cpu_op", "aten::_local_scalar_dense", 100.0, 200.0, 7, {}],
    ["cuda_runtime", "cudaStreamSynchronize", 120.0, 170.0, 7, {"correlation": 5}],
    ["cuda_runtime", "cudaMemcpyAsync", 105.0, 10.0, 7, {"correlation": 4}],
    ["gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 110.0, 2.0, 0, {"correlation": 4, "stream": 7}],
]


def test_a_wait_for_the_device_inside_the_call_names_its_line() -> None:
    traces = read([card(*ITEM, ops=[op("aten::_local_scalar_dense", 12)])])

    (found,) = [f for f in findings.find(traces) if f.kind == "device_sync"]
    assert (found.line, found.count, found.cost_us) == (12, 2, 172.0)


def test_what_the_device_idles_after_a_wait_is_the_waits_cost() -> None:
    kernels = [["kernel", "first", 90.0, 20.0, 0, {}], ["kernel", "second", 390.0, 20.0, 0, {}]]
    told = findings.find(read([card(*ITEM, *kernels, ops=[op("aten::_local_scalar_dense", 12)])]))

    # 110 to 112 the copy, 120 to 290 the wait, 120 to 390 the device without work since the host waits.
    (found,) = [f for f in told if f.kind == "device_sync"]
    assert (found.line, found.cost_us) == (12, 272.0)
    assert "then for the host, 270 µs" in found.sentence
    assert "launch_gap" not in {f.kind for f in told}


def test_what_the_device_idled_before_a_wait_is_not_the_waits_cost() -> None:
    """A wait with nothing left to wait for, after the host was long in Python."""
    kernels = [["kernel", "first", 100.0, 20.0, 0, {}], ["kernel", "second", 500.0, 20.0, 0, {}]]
    wait = ["cuda_runtime", "cudaDeviceSynchronize", 420.0, 5.0, 7, {}]
    told = {f.kind: f for f in findings.find(read([card(*kernels, wait)]))}

    assert (told["launch_gap"].cost_us, told["device_sync"].cost_us) == (300.0, 80.0)


def test_of_two_waits_in_one_gap_the_first_has_the_idle_time() -> None:
    kernels = [["kernel", "first", 100.0, 100.0, 0, {}], ["kernel", "second", 500.0, 20.0, 0, {}]]
    waits = [
        ["cuda_runtime", "cudaStreamSynchronize", start, length, 7, {}]
        for start, length in ((120.0, 85.0), (320.0, 60.0), (460.0, 40.0))  # the last until the kernel begins
    ]
    around = [["cpu_op", "aten::item", 110.0 + 200 * n, 110.0, 7, {}] for n in range(2)]
    told = findings.find(
        read([card(*kernels, *waits, *around, ops=[op("aten::item", 3), op("aten::item", 4)])])
    )

    # 120 to 205 and the device idle until 500; line 4 its own wait only.
    syncs = {f.line: f.cost_us for f in told if f.kind == "device_sync"}
    assert syncs == {3: 380.0, 4: 60.0}


def test_a_wait_with_nothing_after_it_costs_itself_and_a_kernel_with_its_name_none() -> None:
    kernels = [
        ["kernel", "first", 100.0, 200.0, 0, {}],
        ["kernel", "cudaStreamSynchronize", 250.0, 60.0, 0, {}],
    ]
    wait = ["cuda_runtime", "cudaStreamSynchronize", 120.0, 195.0, 7, {}]
    told = findings.find(read([card(*kernels, wait)]))

    assert {(f.kind, f.cost_us) for f in told if f.kind != "host_stall"} == {("device_sync", 195.0)}


def test_the_wait_at_the_end_is_the_judges_own() -> None:
    late = ["cuda_runtime", "cudaDeviceSynchronize", 910.0, 80.0, 7, {}]

    assert "device_sync" not in {f.kind for f in findings.find(read([card(late)]))}


def test_gaps_between_kernels_are_launch_gaps() -> None:
    apart = [["kernel", "pull", 100.0 * i, 20.0, 0, {}] for i in range(1, 6)]
    close = [["kernel", "pull", 100.0 + 20 * i, 20.0, 0, {}] for i in range(5)]

    (found,) = [f for f in findings.find(read([card(*apart)])) if f.kind == "launch_gap"]
    assert (found.cost_us, found.count) == (320.0, 4)
    assert "launch_gap" not in {f.kind for f in findings.find(read([card(*close)]))}


def test_mechanisms_of_a_card_with_their_shares() -> None:
    ptx = ".visible .entry _Z4pullPf(\n  ld.acquire.sys.global.u32 %r1, [%rd1];\n  ld.global.v4.u32 {%r2}, [%rd2];\n"
    events = [
        ["kernel", "pull(float*)", 100.0, 60.0, 0, {}],
        [
            "kernel",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            200.0,
            30.0,
            0,
            {},
        ],
        ["gpu_memcpy", "Memcpy PtoP (Device -> Device)", 300.0, 10.0, 0, {"bytes": 64}],
    ]

    found = movement.tell(read([card(*events)] * 2), [NativeFacts(ptx=ptx)], cards=True)

    assert found["mechanisms"] == [
        {"name": "SM load/store", "certain": False, "share": 0.6},
        {"name": "copy engine", "certain": True, "share": 0.1},
        {"name": "NCCL", "certain": True, "share": 0.3},
    ]
    assert found["movement"]["own_share"] == pytest.approx(0.6)


def test_a_card_without_any_mechanism_says_none() -> None:
    events = ["kernel", "at::native::elementwise_kernel<4>(int)", 100.0, 60.0, 0, {}]

    found = movement.tell(read([card(events)]), [], cards=True)

    assert [row["name"] for row in found["mechanisms"]] == ["none"]
    assert movement.tell([], [], cards=True)["mechanisms"] == []
    assert movement.tell([], [], cards=True)["movement"]["told"] == movement.NO_TRACE


@pytest.mark.parametrize(("claims", "total"), [([5, 7], 12), ([5, None], None), ([5, "7"], None), ([], None)])
def test_peak_memory_of_the_cards_is_that_of_all_ranks(claims: list[Any], total: int | None) -> None:
    blobs = [zlib.compress(json.dumps({"device_peak": claim}).encode()) for claim in claims]

    assert Look(read(blobs)).device_peak == total


def test_ranks_share_one_clock() -> None:
    traces = read([card(base=1_000_000), card(base=1_500_000)])

    assert [t.calls()[0].start for t in traces] == [0.0, 500.0]


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"x" * 100,
        zlib.compress(b"[]"),
        zlib.compress(b"[" * 5000),
        zlib.compress(b"0" * (40 << 20)),
        zlib.compress(json.dumps({"trace": 5, "log": [], "notes": "a"}).encode()),
        zlib.compress(json.dumps({"trace": {"base_ns": -1, "events": [1, [], [{}] * 6]}}).encode()),
        zlib.compress(
            b'{"trace": {"events": [["kernel", "k", NaN, 1, 1, {}], ["kernel", "k", 1, -1, 1, {}]]}}'
        ),
        zlib.compress(
            b'{"log": {"ops": [{"op": 5}, {"op": "a", "line": 1e99, "reads": [[1]]}], "result": [null]}}'
        ),
    ],
)
def test_a_blob_that_can_be_no_trace_tells_nothing(blob: bytes) -> None:
    (trace,) = read([blob])

    assert trace.events == []
    assert timeline([trace]) is None
    assert findings.find([trace]) == []


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e400", "true"])
def test_a_number_that_is_no_time_leaves_its_event_out(number: str) -> None:
    blob = zlib.compress(f'{{"trace":{{"base_ns":0,"events":[["cpu_op","x",{number},1,1,{{}}]]}}}}'.encode())
    (trace,) = read([blob])
    assert trace.events == []


def test_operators_are_matched_in_order_and_none_within_another() -> None:
    def event(name: str, start: float, duration: float) -> Event:
        return Event("cpu_op", name, start, duration, 1, {})

    ops = [Op(name, None, (), (), ()) for name in ("a", "missing", "b", "a")]
    events = [event("a", 0, 10), event("b", 5, 2), event("a", 11, 1), event("b", 12, 1), event("a", 14, 1)]
    assert findings._matched(ops, events) == [events[0], None, events[3], events[4]]


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_operators_that_did_not_happen_are_not_looked_for_in_every_event() -> None:
    Name.compared, many = 0, 500
    ops = [Op(f"o{n}", None, (), (), ()) for n in range(many)]
    events = [Event("cpu_op", Name("x"), float(n), 0.5, 1, {}) for n in range(many)]
    assert findings._matched(ops, events) == [None] * many
    assert Name.compared < 10 * many


def _lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python something takes: a measure that no load changes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _waits_behind_kernels(n: int) -> bytes:
    kernels = [["kernel", "k", i / n, 0.1 / n, 0, {}] for i in range(n)]
    waits = [["cuda_runtime", "cudaStreamSynchronize", 10 + i / n, 0.1 / n, 7, {}] for i in range(n)]
    return card(*kernels, *waits, ops=[op("a", i + 1) for i in range(n)])


def _copies_with_launches(n: int) -> bytes:
    copies = [["gpu_memcpy", "Memcpy HtoD", i / n, 0.1 / n, 0, {"correlation": i}] for i in range(n)]
    launches = [["cuda_runtime", "launch", i / n, 0.1 / n, 7, {"correlation": i}] for i in range(n)]
    return card(*copies, *launches)


def _waits_in_operators(n: int) -> bytes:
    step = 800 / n
    waits = [["cuda_runtime", "cudaStreamSynchronize", i * step, 0.1 * step, 7, {}] for i in range(n)]
    around = [["cpu_op", "a", i * step, 0.2 * step, 7, {}] for i in range(n)]
    kernels = [["kernel", "k", (i + 0.5) * step, 0.1 * step, 0, {}] for i in range(n)]
    return card(*waits, *around, *kernels, ops=[op("a", i + 1) for i in range(n)])


def _stalls(n: int) -> bytes:
    call = ["user_annotation", f"{CALL} 0", 0.0, 200.0 * n, 7, {}]
    events = [["cpu_op", "a", 200.0 * i, 1.0, 7, {}] for i in range(n)]
    log = {"ops": [op("a", 1)] * n, "result": [], "whole": True, "triton": False}
    return zlib.compress(
        json.dumps({"trace": {"base_ns": 0, "events": [call, *events]}, "log": log}).encode()
    )


def _many_places(n: int) -> bytes:
    places = [[i, "int8"] for i in range(n)]
    return card(ops=[op("a", 1) | {"reads": places, "writes": places}])


def _collectives_between_operators(n: int) -> bytes:
    step = 800 / n
    operators = [["cpu_op", "a", i * step, 0.1 * step, 7, {}] for i in range(n)]
    moving = [["user_annotation", "gloo:x", (i + 0.2) * step, 0.3 * step, 8, {}] for i in range(n)]
    return card(*operators, *moving)


@pytest.mark.parametrize(
    "made",
    [
        _waits_behind_kernels, _copies_with_launches, _waits_in_operators, _stalls, _many_places,
        _collectives_between_operators,
    ],
)  # fmt: skip
def test_a_trace_ten_times_as_long_takes_no_hundred_times_as_much(made: Callable[[int], bytes]) -> None:
    took = []
    for size in (200, 2000):
        traces = read([made(size)])
        took.append(_lines_run(lambda traces=traces: (findings.find(traces), timeline(traces))))  # type: ignore[misc]
    assert took[1] < 20 * took[0]


def test_the_timeline_tells_python_from_waits_for_a_collective() -> None:
    drawn = timeline(read([_collectives_between_operators(4)]))
    assert drawn is not None
    host = [(bar[2], bar[3], bar[4]) for bar in drawn["bars"] if bar[1] == "host"][:4]
    assert host == [
        ("operator", 0.0, 20.0),
        ("python", 20.0, 20.0),
        ("wait", 40.0, 60.0),
        ("python", 100.0, 100.0),
    ]


@pytest.mark.parametrize("name", ["_Z" + "9" * 5000, "_ZN" + "0" * 5000, "_Z٣abc", "_ZN" + "1a" * 5000])
def test_whatever_a_kernel_is_called_it_costs_no_result(name: str) -> None:
    facts = NativeFacts(ptx=f".visible .entry {name}(\n  multimem.st.global.u32 [a], b;\n")
    told = Look([]).tell([facts], cards=True, detail=True)
    assert len(told["mechanism_evidence"][0]["where"]) <= 200


def test_what_a_build_tells_cannot_cost_the_result_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernels(_: NativeFacts) -> list[dict[str, Any]]:
        raise ValueError("as no build tells it")

    monkeypatch.setattr(NativeFacts, "kernels", kernels)
    told = Look([]).tell([NativeFacts()], cards=True, detail=True)
    assert told["kernels"] == []
    assert "could not be read" in told["look_notes"][0]


def test_whatever_a_trace_does_to_its_readers_the_result_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "find", lambda *_, **__: 1 // 0)
    told = Look(read([zlib.compress(b"{}")])).tell([], cards=False, detail=True)
    assert told["findings"] == []
    assert "could not be read" in told["look_notes"][0]


# --- what is told of several calls, and of several ranks ---


def repeated(stalls: list[float], length: float = 1000.0) -> bytes:
    """A blob of one rank on a CPU: one call per stall, each after an operator that took what is left."""
    events: list[list[Any]] = []
    for number, stall in enumerate(stalls):
        begin = 2 * number * length
        events.append(["user_annotation", f"{CALL} {number}", begin, length, 7, {}])
        events.append(["cpu_op", "aten::mm", begin, length - stall, 7, {}])
    log = {"ops": [op("aten::mm", 7)], "result": [], "whole": False, "triton": False}
    found = {"trace": {"base_ns": 0, "events": events}, "log": log}
    return zlib.compress(json.dumps(found).encode())


@pytest.mark.parametrize(
    ("stalls", "told"),
    [
        ([600, 0, 0], []),
        ([0, 0, 600], []),
        ([600, 0, 500], [500.0]),
        ([400, 600, 500], [500.0]),
        ([600], [600.0]),
    ],
)
def test_what_one_call_of_several_shows_is_the_machines(stalls: list[float], told: list[float]) -> None:
    found = findings.find(read([repeated(stalls)]))
    assert [(f.kind, f.line, f.cost_us) for f in found] == [("host_stall", 7, cost) for cost in told]


def test_shares_of_different_ranks_are_of_the_same_call() -> None:
    found = findings.find(read([repeated([400.0]), repeated([0.0], length=4000.0)]))
    assert [(f.rank, f.cost_us, f.share) for f in found] == [(0, 400.0, pytest.approx(0.1))]
    assert findings.find(read([repeated([150.0]), repeated([0.0], length=4000.0)])) == []


def test_a_cast_belongs_to_one_round_trip_only() -> None:
    def cast(source: int, before: str, target: int, after: str, line: int) -> Op:
        return Op("aten::_to_copy", line, ((source, before),), (), ((target, after),))

    ops = [
        cast(0, "bfloat16", 1, "float32", 9),
        cast(1, "float32", 2, "bfloat16", 10),
        cast(2, "bfloat16", 3, "float32", 11),
        cast(3, "float32", 4, "bfloat16", 12),
    ]
    assert findings.round_trips(ops) == [
        (0, 1, "bfloat16", "float32"),
        (2, 3, "bfloat16", "float32"),
    ]
    assert findings.round_trips(ops[1:]) == [(0, 1, "float32", "bfloat16")]


def test_calls_that_nobody_asked_for_are_not_read() -> None:
    """Each costs a walk through all events: with thousands in a forged trace a worker was held for hours."""
    rows = [["user_annotation", f"{CALL} {n}", n, 500000, 1, {}] for n in range(1000)]
    rows += [["cpu_op", "aten::add", 1000 + n, 1, 1, {}] for n in range(5000)]
    item = {"trace": {"base_ns": 0, "events": rows}}

    (trace,) = read([zlib.compress(json.dumps(item).encode())])

    assert len(trace.calls()) == MAX_CALLS
    assert trace.notes == [f"1000 calls are marked, more than were asked for: only {MAX_CALLS} are read"]
    assert len(trace.events) == MAX_CALLS + 5000
