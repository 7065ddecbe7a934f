"""Mechanisms from short excerpts of real disassembly (nvcc 13.0, sm_90a) and from made-up traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.diagnose import mechanisms
from evaluator.diagnose.mechanisms import COPY_ENGINE, NCCL, NVLS, SM, TMA, classify, identifier

NATIVE = Path(__file__).parent / "native"


def _text(name: str) -> str:
    return (NATIVE / name).read_text()


def _names(diagnosis: mechanisms.Diagnosis) -> list[str]:
    return [m.name for m in diagnosis.mechanisms]


def _event(cat: str, name: str, dur: float) -> dict[str, Any]:
    return {"cat": cat, "name": name, "dur": dur}


def test_bulk_copies_are_tma() -> None:
    found = classify(sass=_text("tma.sass"))
    assert _names(found) == [TMA]
    assert found.mechanisms[0].certain
    assert {e.where for e in found.mechanisms[0].evidence} == {"tma_bulk_g2s", "tma_tensor_ld"}


def test_multicast_loads_show_in_machine_code() -> None:
    found = classify(sass=_text("nvls.sass"))
    assert _names(found) == [NVLS]
    assert found.mechanisms[0].certain


def test_multicast_stores_show_in_ptx_only() -> None:
    found = classify(ptx=_text("nvls.ptx"))
    assert _names(found) == [NVLS]
    assert {e.where for e in found.mechanisms[0].evidence} == {"mm_st", "mm_red"}


def test_a_pull_with_device_barriers_may_be_peer_access_but_is_not_certain() -> None:
    found = classify(sass=_text("pull.sass"))
    assert _names(found) == [SM]
    assert not found.mechanisms[0].certain


def test_a_kernel_that_waits_for_nobody_says_nothing() -> None:
    assert _names(classify(sass=_text("plain.sass"))) == []


def test_imports_are_possible_until_a_trace_shows_them() -> None:
    imports = "                 U cudaMemcpyPeerAsync@libcudart.so.13\n                 U ncclAllReduce\n"
    assert [(m.name, m.certain) for m in classify(imports=imports).mechanisms] == [
        (COPY_ENGINE, False),
        (NCCL, False),
    ]
    ran = classify(imports=imports, trace=[_event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 10.0)])
    assert [(m.name, m.certain) for m in ran.mechanisms] == [(COPY_ENGINE, True)]


def test_shares_of_device_time() -> None:
    trace = [
        _event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 60.0),
        _event("kernel", "void pull<uint4>(Peers, uint4*, long, int, int, unsigned int)", 30.0),
        _event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 10.0),
        _event("cuda_runtime", "cudaLaunchKernel", 500.0),
    ]
    found = classify(sass=_text("pull.sass"), trace=trace)
    nccl = next(m for m in found.mechanisms if m.name == NCCL)
    assert nccl.share == pytest.approx(0.6)
    assert found.own_share == pytest.approx(0.3)


def test_no_trace_no_share() -> None:
    assert classify(sass=_text("pull.sass")).own_share is None
    assert classify(trace=[]).own_share is None


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z4pullI5uint4Ev5PeersPT_liij", "pull"),
        ("_ZN2pk5inner4pullEPKfi", "pull"),
        ("_Z8two_shot5PeersPK5uint4PS0_liij", "two_shot"),
        ("void pull<uint4>(Peers, uint4*, long, int, int, unsigned int)", "pull"),
        ("at::native::vectorized_elementwise_kernel<4, int>(int)", "vectorized_elementwise_kernel"),
        ("lsa_pull16", "lsa_pull16"),
    ],
)
def test_plain_names_of_kernels(symbol: str, name: str) -> None:
    assert identifier(symbol) == name


def test_empty_lines_of_a_disassembly_are_read_once() -> None:
    for head, text in ((mechanisms._FUNCTION, "Function : k"), (mechanisms._OPCODE, "/*0000*/ MOV")):
        found = head.search("\n \n" + text)
        assert found is not None
        assert found.start() == 3
