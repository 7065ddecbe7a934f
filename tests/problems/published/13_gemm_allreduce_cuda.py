import torch
import torch.distributed as dist

NUM_CHUNKS = 4
_out_cache = {}


@torch.no_grad()
def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    M, N = A_local.shape[0], B_local.shape[1]
    key = (M, N, A_local.dtype)
    if key not in _out_cache:
        _out_cache[key] = torch.empty(M, N, dtype=A_local.dtype, device=A_local.device)
    C = _out_cache[key]
    handles = []
    rows = (M + NUM_CHUNKS - 1) // NUM_CHUNKS
    for start in range(0, M, rows):
        torch.matmul(A_local[start:start + rows], B_local, out=C[start:start + rows])
        handles.append(dist.all_reduce(C[start:start + rows], op=dist.ReduceOp.SUM, async_op=True))
    for h in handles:
        h.wait()
    return C
