"""A rank's slots in card memory: as many lanes as a batch has calls, and the two words by which turns are taken.

A lane's bytes are the supervisor's: it fills the inputs and reads the outputs. The words say up to which call inputs
are in place, and up to which outputs are.
"""

from __future__ import annotations

from typing import Any

import cards
import torch
from recipe import leaves, shaped, span_bytes


class Lane:
    """Inputs and outputs of one call."""

    def __init__(self, inputs: cards.Region, offset: int, outputs: torch.Tensor) -> None:
        self._inputs, self._offset = inputs, offset
        self.outputs = outputs
        self.views: dict[Any, torch.Tensor] = {}
        """Places of the outputs as tensors, kept by whoever writes them."""
        self._made: dict[tuple[Any, ...], torch.Tensor] = {}

    def _make(self, dtype: str, shape: list[int], strides: list[int] | None, offset: int) -> torch.Tensor:
        flat = self._inputs.bytes(self._offset + offset, span_bytes(dtype, shape, strides))
        return shaped(flat, dtype, shape, strides)

    def prepare(self, recipe: list[dict[str, Any]]) -> None:
        """Make the tensors of a recipe ahead; their values may still be put in place."""
        self._made = {_key(*leaf): self._make(*leaf) for node in recipe for leaf in leaves(node)}

    def at(self, dtype: str, shape: list[int], strides: list[int] | None, offset: int) -> torch.Tensor:
        """The tensor at a place of the lane: the one made ahead at the first asking."""
        made = self._made.pop(_key(dtype, shape, strides, offset), None)
        return self._make(dtype, shape, strides, offset) if made is None else made


def _key(dtype: str, shape: list[int], strides: list[int] | None, offset: int) -> tuple[Any, ...]:
    """An empty tensor begins where the next one does: the place alone is no key."""
    return (offset, dtype, tuple(shape), None if strides is None else tuple(strides))


class Lanes:
    """All lanes of one rank. `sizes`: {"count", "inputs", "outputs"}, bytes of one lane each."""

    def __init__(self, descriptors: tuple[int, ...], device: torch.device, sizes: dict[str, int]) -> None:
        index = device.index
        cards.ready(index)
        inputs_fd, outputs_fd, flags_fd = descriptors
        count = sizes["count"]
        inputs = cards.Region.take(inputs_fd, index, count * sizes["inputs"])
        outputs = cards.Region.take(outputs_fd, index, count * sizes["outputs"])
        self._flags = cards.Region.take(flags_fd, index, 1)
        self._lanes = [
            Lane(inputs, n * sizes["inputs"], outputs.bytes(n * sizes["outputs"], sizes["outputs"]))
            for n in range(count)
        ]
        self._tick = torch.zeros(1, device=device)

    def lane(self, number: int) -> Lane:
        """Lane `number`, counted from 0."""
        return self._lanes[number]

    def await_go(self, call: int) -> None:
        """The current stream waits until the inputs of call number `call` are in place."""
        cards.wait_for(torch.cuda.current_stream().cuda_stream, self._flags.address + cards.GO, call)

    def tell_done(self, call: int) -> None:
        """The current stream says that the outputs of call number `call` are in place."""
        cards.write_word(torch.cuda.current_stream().cuda_stream, self._flags.address + cards.DONE, call)

    def tick(self) -> None:
        """As little work as a card can do."""
        self._tick.add_(1)
