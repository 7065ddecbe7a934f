"""The prompt that a model gets for a problem: same declaration in, same text and hash out. Free of Django."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from problems.prompt_examples import EXAMPLES
from problems.prompt_facts import HELPERS, comparison, judging

_WORD = re.compile(r"[A-Za-z_]\w*")
VARIANTS = ("zero-shot", "one-shot")
DTYPES = {"bf16": "bfloat16"}
BACKENDS = {
    "cuda": "Write the device code in CUDA C++, compiled through torch.utils.cpp_extension.load_inline. "
    "PyTorch, torch.distributed and symmetric memory may do what needs no kernel of yours.",
    "triton": "Write the device code in Triton (`import triton`). "
    "PyTorch, torch.distributed and symmetric memory may do what needs no kernel of yours.",
    "cpp": "There is no GPU here. Use PyTorch and torch.distributed, and where it helps C++ compiled through "
    "torch.utils.cpp_extension.load_inline.",
}


@dataclass(frozen=True)
class Prompt:
    """A prompt; `sha256` is over the text, so a run can say what its model was given."""

    problem: str
    target: str
    variant: str
    backend: str
    dtype: str
    text: str
    sha256: str


def backends_of(hardware: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the backends that make sense on a target, the usual one first."""
    return ("cpp",) if hardware.get("device") == "cpu" else ("cuda", "triton")


def build_prompt(
    *,
    slug: str,
    title: str,
    spec: Mapping[str, Any],
    target: str,
    hardware: Mapping[str, Any],
    variant: str,
    backend: str = "",
    dtype: str = "bf16",
) -> Prompt:
    """Return the prompt for a problem on a target.

    `hardware` has title, ranks, backend, device, and if known cells (the sizes that are judged), arch,
    peaks_tflops, memory_gbs, link_gbs, in_network_reduction, timed. Without `backend` it is the target's usual one. The
    text does not depend on the order of keys in `spec` or `hardware`. Raises ValueError for an unknown variant,
    backend or dtype.
    """
    backend = backend or backends_of(hardware)[0]
    choices = {"variant": (variant, VARIANTS), "backend": (backend, BACKENDS), "dtype": (dtype, DTYPES)}
    for what, (value, known) in choices.items():
        if value not in known:
            raise ValueError(f"unknown {what} {value!r}; {what}s: {', '.join(known)}")
    parts = [
        f"# {title}",
        _task(hardware),
        f"## Language\n\n{BACKENDS[backend]}",
        f"## Hardware\n\n{_hardware(hardware, DTYPES[dtype])}",
        f"## What to compute\n\n{_semantics(spec)}",
        f"## Signature\n\n```python\n{spec['signature']}\n```",
        f"## Arguments\n\n{_arguments(spec['arguments'])}",
        f"## Outputs\n\n{_outputs(spec['outputs'])}",
        f"## Sizes\n\n{_sizes(spec, hardware)}",
        f"## How your file is judged\n\n{judging(hardware)}",
        f"## What your file can import\n\n{HELPERS[backend]}",
        f"## Reference\n\nThis is the baseline your file is measured against.\n\n```python\n"
        f"{str(spec['reference']).strip()}\n```",
        _rules(hardware),
    ]
    if variant == "one-shot":
        parts.insert(-1, f"## Example of an answer to another problem\n\n{EXAMPLES[backend]}")
    text = "\n\n".join(parts).strip() + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Prompt(slug, target, variant, backend, dtype, text, digest)


def _hardware(hardware: Mapping[str, Any], dtype: str) -> str:
    """Describe one rank's device; a CPU has no peaks worth telling, and ranks that share a card have not its own."""
    lines = [f"- {hardware['title']}; {hardware['ranks']} ranks."]
    if hardware.get("arch"):
        lines.append(f"- Architecture: sm_{hardware['arch']}.")
    if hardware.get("device") != "cpu" and hardware.get("timed") is not False:
        peaks = sorted((hardware.get("peaks_tflops") or {}).items())
        if peaks:
            listed = ", ".join(f"{path} {value:g}" for path, value in peaks)
            lines.append(f"- Peak of one device, dense, in TFLOP/s: {listed}.")
        if hardware.get("memory_gbs"):
            lines.append(f"- Memory of one device: {hardware['memory_gbs']:g} GB/s.")
        if hardware.get("link_gbs") and hardware["ranks"] > 1:
            can = "can" if hardware.get("in_network_reduction") else "cannot"
            lines.append(
                f"- Link of one device: {hardware['link_gbs']:g} GB/s each way; the switch {can} add up in the network."
            )
    lines.append(f"- Floating-point tensors are {dtype} unless an argument says otherwise.")
    return "\n".join(lines)


def _task(hardware: Mapping[str, Any]) -> str:
    aim = "runs" if hardware.get("timed") is False else "runs as fast as it can"
    return (
        f"Write one Python file that defines `solution` and {aim} on {hardware['title']}: "
        f"{hardware['ranks']} ranks, one process each, torch.distributed with the {hardware['backend']} backend "
        "already initialised. Every rank calls `solution` with its own arguments at the same time."
    )


def _semantics(spec: Mapping[str, Any]) -> str:
    """What to compute, and what looks like a mistake in it but is not."""
    text = str(spec["semantics"])
    if spec.get("oddities"):
        text += "\n\nWhat looks odd, but is meant:\n\n" + "\n".join(f"- {item}" for item in spec["oddities"])
    return text


def _arguments(arguments: list[Mapping[str, Any]]) -> str:
    return "\n".join(f"- `{a['name']}`: {_kind(a)}. {a['description']}{_role(a)}".rstrip() for a in arguments)


def _role(argument: Mapping[str, Any]) -> str:
    match argument["role"]:
        case "inout":
            how = comparison(argument) if argument.get("tolerance") else ""
            return f" Change it in place as described: the change is compared. {how}".rstrip()
        case "scratch":
            return " You may overwrite it; it is not compared."
        case "static":
            return " The same at every call."
    return ""


def _kind(item: Mapping[str, str]) -> str:
    parts = [item.get("kind", ""), item.get("shape", ""), item.get("dtype", "")]
    return ", ".join(part for part in parts if part)


def _outputs(outputs: list[Mapping[str, Any]]) -> str:
    """One line per output; several are returned as a tuple, or as the keys that they are named by."""
    lines = []
    for output in outputs:
        facts = ", ".join(str(output[key]) for key in ("shape", "dtype", "ranks") if output.get(key))
        about = f" {output['description']}" if output.get("description") else ""
        alias = ", ".join(f"`{name}`" for name in output.get("may_alias", ()))
        shared = f" It may share memory with {alias}." if alias else ""
        lines.append(f"- `{output['name']}`: {facts}.{about} {comparison(output)}{shared}")
    return "\n".join(lines)


def _sizes(spec: Mapping[str, Any], hardware: Mapping[str, Any]) -> str:
    """List sizes in one order whatever the database made of the keys: PostgreSQL's jsonb sorts them."""
    sizes: Mapping[str, Mapping[str, int]] = spec["sizes"]
    usual = ("tiny", "default", "large")
    names = [name for name in usual if name in sizes] + sorted(set(sizes) - set(usual))
    lines = [
        f"- {name}: " + ", ".join(f"{key} = {value}" for key, value in sorted(sizes[name].items()))
        for name in names
    ]
    derived = derived_symbols(spec)
    if derived:
        lines.append("- at every size: " + ", ".join(f"{name} = {rule}" for name, rule in derived))
    judged = [name for name in hardware.get("cells") or () if name in sizes]
    told = f" Judged here: {', '.join(judged)}." if judged else ""
    return f"W is the number of ranks, {hardware['ranks']} here; // rounds down.{told}\n\n" + "\n".join(lines)


def derived_symbols(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The derived symbols that shapes name, and those that they are made of, by name. Arguments are none."""
    arguments = spec.get("arguments", ())
    symbols = dict(spec.get("symbols", {}))
    for argument in arguments:
        symbols.pop(argument["name"], None)
    found: dict[str, str] = {}
    todo = _WORD.findall(" ".join(item.get("shape", "") for item in (*arguments, *spec.get("outputs", ()))))
    while todo:
        name = todo.pop()
        if name in symbols and name not in found:
            found[name] = symbols[name]
            todo += _WORD.findall(symbols[name])
    return sorted(found.items())


def _rules(hardware: Mapping[str, Any]) -> str:
    device = "CUDA C++ through torch.utils.cpp_extension.load_inline, Triton and symmetric memory are"
    if hardware.get("device") == "cpu":
        device = "C++ through torch.utils.cpp_extension.load_inline is"
    return (
        "## Rules\n\n"
        "- Values are new at every call; shapes, dtypes and the structure of outputs must match exactly.\n"
        "- Any strides will do for a returned tensor; lists and tuples count as the same.\n"
        "- Do not change inputs unless an argument says so, and return no view of an input unless an output says so.\n"
        f"- {device} allowed, as are side streams, overlap and buffers kept between calls.\n"
        "- Answer with the file only, in one ```python block."
    )
