"""Phase-aware, communication-aware roofline.

T_roof = Σ_k max(W_k / P_peak, Q_mem,k / B_mem, Q_comm,k / B_comm): inside a phase everything
overlaps, between phases times add (ParallelKernelBench paper; design section 6). Link time is
derived from the collectives that a phase declares, with or without in-network reduction.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Number = int | float

_OPS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "sqrt": math.sqrt,
}


def evaluate(expression: str | Number, symbols: Mapping[str, Number]) -> float:
    """Arithmetic over named sizes: + - * / // % **, comparisons, `a if c else b`, max, min, ceil…

    Raises ValueError naming the expression when it holds anything else or an unknown name.
    """
    if not isinstance(expression, str):
        return float(expression)
    try:
        return float(_eval(ast.parse(expression, mode="eval").body, symbols))
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"cannot evaluate {expression!r}: {error}") from error


def _eval(node: ast.AST, symbols: Mapping[str, Number]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return symbols[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPS[type(op)](_eval(left, symbols), _eval(right, symbols))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_eval(operand, symbols)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPS[type(op)](_eval(left, symbols), _eval(right, symbols))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _eval(body if _eval(test, symbols) else orelse, symbols)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _FUNCTIONS[name](*(_eval(arg, symbols) for arg in args))
    raise TypeError(f"{type(node).__name__} is not allowed")


@dataclass(frozen=True)
class Hardware:
    """Peaks of one rank's device: TFLOP/s per dtype path, GB/s of memory and of one link direction."""

    peaks: Mapping[str, float]
    memory_gbs: float
    link_gbs: float
    in_network_reduction: bool


@dataclass(frozen=True)
class Phase:
    """One phase of a problem: expressions over its sizes, per rank.

    `comm` is a list of {op, bytes, group?}: `bytes` is the collective's payload as named in
    `link_bytes`, `group` the number of ranks that take part (default W).
    """

    name: str
    flops: str
    path: str
    memory_bytes: str
    comm: tuple[Mapping[str, str], ...]
    note: str = ""


@dataclass(frozen=True)
class PhaseTime:
    """Seconds that a phase needs at least, by resource; `bound` names the largest."""

    name: str
    compute: float
    memory: float
    link: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory, self.link)

    @property
    def bound(self) -> str:
        times = {"compute": self.compute, "memory": self.memory, "nvlink": self.link}
        return max(times, key=lambda name: times[name])


def link_bytes(op: str, payload: float, group: float, in_network_reduction: bool) -> float:
    """Least bytes over one rank's link in its busier direction, for one collective of `group` ranks.

    payload means: all_reduce, broadcast, reduce: the tensor S; all_gather: one rank's shard;
    reduce_scatter, all_to_all, scatter, gather: one rank's whole (W-slice) tensor; p2p: the bytes
    sent (or received, if more).
    """
    share = (group - 1) / group if group > 0 else 0.0
    if group <= 1:
        return 0.0
    match op:
        case "all_reduce":
            return payload if in_network_reduction else 2 * share * payload
        case "broadcast" | "p2p":
            return payload
        case "reduce":
            return payload
        case "all_gather":
            return (group - 1) * payload
        case "reduce_scatter" | "all_to_all" | "scatter" | "gather":
            return share * payload
    raise ValueError(f"unknown collective {op!r} in a phase")


def phase_times(phases: list[Phase], symbols: Mapping[str, Number], hardware: Hardware) -> list[PhaseTime]:
    """The least time of each phase in seconds at the given sizes (symbols must include W)."""
    times = []
    for phase in phases:
        flops = evaluate(phase.flops, symbols)
        compute = 0.0
        if flops:
            if phase.path not in hardware.peaks:
                raise ValueError(f"phase {phase.name!r}: no peak for dtype path {phase.path!r}")
            compute = flops / (hardware.peaks[phase.path] * 1e12)
        memory = evaluate(phase.memory_bytes, symbols) / (hardware.memory_gbs * 1e9)
        link = 0.0
        for item in phase.comm:
            group = evaluate(item.get("group", "W"), symbols)
            size = evaluate(item["bytes"], symbols)
            link += link_bytes(item["op"], size, group, hardware.in_network_reduction)
        times.append(PhaseTime(phase.name, compute, memory, link / (hardware.link_gbs * 1e9)))
    return times


def roof_seconds(times: list[PhaseTime]) -> float:
    """T_roof: the sum over phases of the largest resource time."""
    return sum(time.seconds for time in times)


def bound_of(times: list[PhaseTime]) -> str:
    """Which resource the whole problem spends most of its T_roof in."""
    totals: dict[str, float] = {}
    for time in times:
        totals[time.bound] = totals.get(time.bound, 0.0) + time.seconds
    return max(totals, key=lambda name: totals[name]) if totals else "memory"
