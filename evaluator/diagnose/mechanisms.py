"""How a submission moved its data: told from what was built and what ran, never from words in the source.

Static evidence is the disassembly (SASS) and the PTX of the built libraries and the symbols that they import; dynamic
evidence is a profiler trace in Chrome's format. What machine code cannot tell (a load from a peer looks like any
other load, a multicast store like any system-scope store) is reported as possible, not as certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TMA, NVLS, SM, COPY_ENGINE, NCCL = "tma", "nvls", "sm_load_store", "copy_engine", "nccl"
TITLES = {
    TMA: "TMA",
    NVLS: "NVLS multimem",
    SM: "SM load/store",
    COPY_ENGINE: "copy engine",
    NCCL: "NCCL",
}
ORDER = (TMA, NVLS, SM, COPY_ENGINE, NCCL)

_FUNCTION = re.compile(r"^[ \t]*Function[ \t]*:[ \t]*(\S+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_WAIT_PTX = re.compile(r"\bld\.(?:acquire|relaxed)\.sys\b[\w.]*|\bld\.volatile\b[\w.]*")
_MOVE_PTX = re.compile(
    r"\b(?:ld|st)\.(?:global\.)?(?:nc\.)?(?:L1::\w+\.)?(?:v[248]\.)?[bfsu](?:8|16|32|64|128)\b"
)
_OPCODE = re.compile(
    r"^[ \t]*/\*[0-9a-f]{4,}\*/[ \t]+(?:@!?U?P\w+[ \t]+)?([A-Z][A-Z0-9]*(?:\.[A-Za-z0-9_]+)*)", re.MULTILINE
)
_TMA_SASS = ("UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG")
_TMA_PTX = re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.(?!commit|wait|prefetch)[\w:.]+")
_NVLS_PTX = re.compile(r"\bmultimem\.(?:ld_reduce|st|red)\b")
_PEER_ACCESS = re.compile(r"(?:LD|ST|LDG|STG)\.E(?:\.|$)")
_WAIT = re.compile(r"LDG?\.E\.(?:\w+\.)*STRONG\.SYS")
_COPY_IMPORTS = re.compile(r"\b(?:cuda(?:Memcpy\w*)|cuMemcpy\w*)\b")
_NCCL_IMPORTS = re.compile(
    r"\bnccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AlltoAll)\b", re.IGNORECASE
)
_NCCL_KERNEL = re.compile(r"^ncclDevKernel")
_LENGTH = re.compile(r"[0-9]{1,4}")
MAX_NAME = 200
"""Letters of a kernel's name, as of an event's."""


@dataclass(frozen=True)
class Evidence:
    """One observation. `certain` False: the mechanism is possible, the observation alone does not prove it."""

    mechanism: str
    certain: bool
    where: str
    why: str


@dataclass
class Mechanism:
    """A mechanism of a submission; `share` is its part of the device time in the trace, None where unknown."""

    name: str
    certain: bool
    share: float | None = None
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def title(self) -> str:
        return TITLES[self.name]


@dataclass(frozen=True)
class Diagnosis:
    """All mechanisms, and the share of device time that ran in the submission's own kernels (None: no trace)."""

    mechanisms: list[Mechanism]
    own_share: float | None = None
    kernels: dict[str, float] = field(default_factory=dict)
    """The share of each of the submission's own kernels, by plain name."""


def _parts(text: str, heads: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """(name, text) of each function in a dump."""
    found = list(heads.finditer(text))
    for index, head in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        yield head[1], text[head.end() : end]


def from_sass(text: str) -> list[Evidence]:
    """Evidence in the output of `cuobjdump -sass`, function by function."""
    evidence = []
    for name, body in _parts(text, _FUNCTION):
        codes = [match[1] for match in _OPCODE.finditer(body)]
        bulk = sorted({code.split(".")[0] for code in codes} & set(_TMA_SASS))
        if bulk:
            # Bulk copies also serve a kernel's own memory: certain as a mechanism, not as one between ranks.
            evidence.append(Evidence(TMA, True, name, f"instructions {', '.join(bulk)}"))
        if any(code.startswith("LDGMC") for code in codes):
            evidence.append(Evidence(NVLS, True, name, "multicast load with reduction (LDGMC)"))
        waits = any(_WAIT.match(code) for code in codes)
        moves = [code for code in codes if _PEER_ACCESS.match(code) and "STRONG" not in code]
        if waits and moves:
            why = f"{moves[0]} beside system-scope loads: flags of peers are waited for"
            evidence.append(Evidence(SM, False, name, why))
    return evidence


def from_ptx(text: str) -> list[Evidence]:
    """Evidence in PTX; the only place where multicast stores and reductions can be told from ordinary ones."""
    evidence = []
    for name, body in _parts(text, _ENTRY):
        if found := _TMA_PTX.search(body):
            evidence.append(Evidence(TMA, True, name, found[0]))
        evidence += [
            Evidence(NVLS, True, name, word)
            for word in sorted({found[0] for found in _NVLS_PTX.finditer(body)})
        ]
        if _WAIT_PTX.search(body) and (move := _MOVE_PTX.search(body)):
            why = f"{move[0]} beside system-scope loads: flags of peers are waited for"
            evidence.append(Evidence(SM, False, name, why))
    return evidence


def kernels_of(*, sass: str = "", ptx: str = "") -> set[str]:
    """Symbols of the kernels in a disassembly or in PTX."""
    return {name for text, heads in ((sass, _FUNCTION), (ptx, _ENTRY)) for name, _ in _parts(text, heads)}


def from_imports(text: str) -> list[Evidence]:
    """Evidence in `nm -D --undefined-only` of a library: calls that it may make on the host."""
    copies = sorted({found[0] for found in _COPY_IMPORTS.finditer(text)})
    calls = sorted({found[0] for found in _NCCL_IMPORTS.finditer(text)})
    evidence = [Evidence(COPY_ENGINE, False, "imports", name) for name in copies]
    return evidence + [Evidence(NCCL, False, "imports", name) for name in calls]


def identifier(symbol: str) -> str:
    """The plain name of a kernel: of a mangled symbol, or of a demangled signature in a trace."""
    if mangled := re.match(r"_Z(N?)K?", symbol):
        name, at = "", mangled.end()
        while (length := _LENGTH.match(symbol, at)) is not None:
            start = length.end()
            at = start + int(length[0])
            name = symbol[start : min(at, start + MAX_NAME)]
            if not mangled[1]:
                break
        return name or symbol[:MAX_NAME]
    plain = re.sub(r"^void\s+", "", symbol).split("(")[0].split("<")[0]
    return plain.rsplit("::", 1)[-1].strip()[:MAX_NAME]


def from_trace(events: Iterable[Mapping[str, Any]], own: Iterable[str] = ()) -> Diagnosis:
    """What a Chrome trace shows ran on the device. `own` are symbols of the kernels that the submission built."""
    names = {identifier(symbol) for symbol in own}
    spent: dict[str, float] = {}
    kernels: dict[str, float] = {}
    total = mine = 0.0
    for event in events:
        kind, name, dur = event.get("cat"), str(event.get("name", "")), event.get("dur")
        if kind not in ("kernel", "gpu_memcpy", "gpu_memset") or not isinstance(dur, (int, float)):
            continue
        total += dur
        if kind == "kernel" and _NCCL_KERNEL.match(name):
            spent[NCCL] = spent.get(NCCL, 0.0) + dur
        elif kind == "gpu_memcpy" and "PtoP" in name:
            spent[COPY_ENGINE] = spent.get(COPY_ENGINE, 0.0) + dur
        elif kind == "kernel" and identifier(name) in names:
            mine += dur
            kernels[identifier(name)] = kernels.get(identifier(name), 0.0) + dur
    found = [
        Mechanism(name, True, spent[name] / total, [Evidence(name, True, "trace", f"{spent[name]:.1f} us")])
        for name in ORDER
        if spent.get(name)
    ]
    shares = {name: spent / total for name, spent in kernels.items()} if total else {}
    return Diagnosis(found, mine / total if total else None, shares)


def classify(
    *,
    sass: str = "",
    ptx: str = "",
    imports: str = "",
    trace: Iterable[Mapping[str, Any]] | None = None,
) -> Diagnosis:
    """All evidence joined. With a trace, host calls that were only possible count where the trace shows them."""
    evidence = [*from_sass(sass), *from_ptx(ptx), *from_imports(imports)]
    ran = None if trace is None else from_trace(trace, kernels_of(sass=sass, ptx=ptx))
    joined: dict[str, Mechanism] = {m.name: m for m in ran.mechanisms} if ran else {}
    for item in evidence:
        if ran is not None and item.mechanism in (COPY_ENGINE, NCCL) and item.mechanism not in joined:
            continue  # imported, but the trace shows that it did not run
        mechanism = joined.setdefault(item.mechanism, Mechanism(item.mechanism, False))
        mechanism.certain |= item.certain
        mechanism.evidence.append(item)
    for mechanism in joined.values():
        if ran is not None and mechanism.share is None:
            # A kernel may move data in more than one way; its time then counts for each.
            where = {identifier(item.where) for item in mechanism.evidence}
            mechanism.share = sum(share for name, share in ran.kernels.items() if name in where)
    ordered = [joined[name] for name in ORDER if name in joined]
    return Diagnosis(ordered, ran.own_share if ran else None, ran.kernels if ran else {})
