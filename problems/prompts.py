"""The prompt that a model gets for a problem: same declaration in, same text and hash out. Free of Django."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VARIANTS = ("zero-shot", "one-shot")

_EXAMPLE = """\
Problem of the example: each rank returns the mean of `x` over all ranks.

```python
import torch
import torch.distributed as dist


def solution(x: torch.Tensor) -> torch.Tensor:
    total = x.clone()
    work = dist.all_reduce(total, async_op=True)  # returns at once; the sum is on its way
    scale = 1.0 / dist.get_world_size()           # host work fits in the meantime
    work.wait()
    return total.mul_(scale)
```
"""


@dataclass(frozen=True)
class Prompt:
    """A prompt; `sha256` is over the text, so a run can say what its model was given."""

    problem: str
    target: str
    variant: str
    text: str
    sha256: str


def build_prompt(
    *, slug: str, title: str, spec: Mapping[str, Any], target: str, hardware: Mapping[str, Any], variant: str
) -> Prompt:
    """Return the prompt for a problem on a target. `hardware` has title, ranks, backend, device, cells.

    Raises ValueError for an unknown variant.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}; variants: {', '.join(VARIANTS)}")
    parts = [
        f"# {title}",
        _task(hardware),
        f"## What to compute\n\n{spec['semantics']}",
        f"## Signature\n\n```python\n{spec['signature']}\n```",
        f"## Arguments\n\n{_arguments(spec['arguments'])}",
        f"## Outputs\n\n{_outputs(spec['outputs'])}",
        f"## Sizes\n\n{_sizes(spec['sizes'])}",
        f"## Reference\n\nThis is the baseline your file is measured against.\n\n```python\n"
        f"{str(spec['reference']).strip()}\n```",
        _rules(hardware),
    ]
    if variant == "one-shot":
        parts.insert(-1, f"## Example of an answer to another problem\n\n{_EXAMPLE}".rstrip())
    text = "\n\n".join(parts).strip() + "\n"
    return Prompt(slug, target, variant, text, hashlib.sha256(text.encode()).hexdigest())


def _task(hardware: Mapping[str, Any]) -> str:
    return (
        f"Write one Python file that defines `solution` and runs as fast as it can on {hardware['title']}: "
        f"{hardware['ranks']} ranks, one process each, torch.distributed with the {hardware['backend']} backend "
        "already initialised. Every rank calls `solution` with its own arguments at the same time."
    )


def _arguments(arguments: list[Mapping[str, str]]) -> str:
    roles = {
        "dynamic": "",
        "inout": " Change it in place as described: the change is compared.",
        "scratch": " You may overwrite it; it is not compared.",
        "static": " The same at every call.",
    }
    return "\n".join(
        f"- `{a['name']}`: {_kind(a)}. {a['description']}{roles.get(a['role'], '')}".rstrip()
        for a in arguments
    )


def _kind(item: Mapping[str, str]) -> str:
    parts = [item.get("kind", ""), item.get("shape", ""), item.get("dtype", "")]
    return ", ".join(part for part in parts if part)


def _outputs(outputs: list[Mapping[str, Any]]) -> str:
    lines = []
    for output in outputs:
        facts = ", ".join(str(output[key]) for key in ("shape", "dtype", "ranks") if output.get(key))
        lines.append(f"- `{output['name']}`: {facts}. {output.get('description', '')}".rstrip())
    return "\n".join(lines)


def _sizes(sizes: Mapping[str, Mapping[str, int]]) -> str:
    return "\n".join(
        f"- {name}: " + ", ".join(f"{key} = {value}" for key, value in values.items())
        for name, values in sizes.items()
    )


def _rules(hardware: Mapping[str, Any]) -> str:
    device = "CUDA C++ through torch.utils.cpp_extension.load_inline, Triton and symmetric memory are"
    if hardware.get("device") == "cpu":
        device = "C++ through torch.utils.cpp_extension.load_inline is"
    return (
        "## Rules\n\n"
        "- Values are new at every call; shapes, dtypes and the structure of outputs must match exactly.\n"
        "- Do not change inputs unless an argument says so.\n"
        f"- {device} allowed, as are side streams, overlap and buffers kept between calls.\n"
        "- Answer with the file only, in one ```python block."
    )
