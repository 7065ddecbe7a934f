import os
import subprocess
import sys

import torch
import torch.distributed as dist

if os.environ["RANK"] == "0":
    spots = [os.path.expanduser("~"), "/tmp", "/dev/shm", "/job", "/opt/pkb/rank", "/opt/pkb/venv/lib/python3.11/site-packages",
             os.path.dirname(torch.__file__), "/usr/lib", "/var/tmp", "/run", "/"]
    for spot in spots:
        try:
            with open(os.path.join(spot, "pkb_redteam_canary_next.txt"), "w") as f:
                f.write("inert canary of the red-team suite\n")
            print("wrote", spot, flush=True)
        except OSError:
            pass
    try:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True)
    except OSError:
        pass


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
