import torch
import torch.distributed as dist


class Engine:
    def __init__(self):
        self.buffers = {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        out = self.buffers.setdefault(tensor.shape, torch.empty_like(tensor))
        out.copy_(tensor)
        dist.all_reduce(out)
        out.note = "a tensor may carry attributes"
        return out


solution = Engine()
