import torch

from problems.leaves import Answer

NAMES = ("grad_fc1_1_lora_A", "grad_fc1_2_lora_A", "grad_fc2_lora_B")


def golden(ranks, size, world, dtype):
    sums = [torch.stack([args[i].to(dtype) for args in ranks]).sum(0) for i in range(3)]
    return [Answer(tuple(sums), dict(zip(NAMES, sums, strict=True))) for _ in ranks]
