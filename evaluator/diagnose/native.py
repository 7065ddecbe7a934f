"""Flags from C++ and CUDA text: a small lexer, since such text need not compile here."""

from __future__ import annotations

import re

from evaluator.diagnose.flags import Findings

# Nothing that is opened must be looked for in vain to the end of the text, over and over: what is never closed goes
# to the end, or to that of its line, and literals of one character are short.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<raw>R\"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)\"|\Z))"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n]){0,12}')"
    r"|(?P<include>^[ \t]*\#[ \t]*include[ \t]*[<\"][^>\"\n]*[>\"])"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<catchall>\.\.\.)",
    re.S | re.M,
)
_CALLS = {
    "socket": "opens_sockets", "connect": "opens_sockets", "getaddrinfo": "opens_sockets",
    "fork": "spawns_processes", "vfork": "spawns_processes", "execve": "spawns_processes",
    "execvp": "spawns_processes", "execl": "spawns_processes", "system": "spawns_processes",
    "popen": "spawns_processes", "posix_spawn": "spawns_processes",
    "dlopen": "uses_ctypes", "dlsym": "uses_ctypes", "process_vm_readv": "uses_ctypes",
    "process_vm_writev": "uses_ctypes", "ptrace": "uses_ctypes", "mprotect": "uses_ctypes",
    "pthread_create": "starts_threads", "getenv": "reads_environment", "PyEval_GetFrame": "walks_frames",
    "PyGC_Collect": "walks_frames", "PyObject_SetAttrString": "patches_modules",
    "PyObject_SetAttr": "patches_modules", "PyRun_SimpleString": "runs_generated_code",
    "PyRun_String": "runs_generated_code",
}  # fmt: skip
_STD = frozenset({"thread", "jthread", "async"})
_INCLUDES = {
    "sys/socket.h": "opens_sockets", "netinet/in.h": "opens_sockets", "arpa/inet.h": "opens_sockets",
    "netdb.h": "opens_sockets", "sys/ptrace.h": "uses_ctypes", "dlfcn.h": "uses_ctypes",
    "spawn.h": "spawns_processes", "pthread.h": "starts_threads",
}  # fmt: skip
PLACES = re.compile(r"(?:^|[\s\"'(=])/(?:proc|sys)(?:/|\b)|/dev/(?:shm|mem|kmem|fd)\b")
"""Paths that describe the machine or other processes."""


def looks_native(text: str) -> bool:
    """Whether a string constant is C++ or CUDA source rather than a message."""
    return "\n" in text and any(
        sign in text for sign in ("#include", "__global__", "PYBIND11_MODULE", "__device__")
    )


def has_kernel(text: str) -> bool:
    """Whether the text defines a device kernel."""
    return "__global__" in text


def scan(text: str, findings: Findings, *, file: str, first_line: int = 1) -> None:
    """Add what the text does to `findings`; lines count from `first_line`."""
    line, at = first_line, 0
    previous = ""
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        kind = match.lastgroup
        if kind == "word":
            _word(match, text, previous, line, findings, file)
            previous = match["word"]
        elif kind == "include":
            _include(match["include"], line, findings, file)
        elif kind == "catchall" and previous == "catch":
            findings.add("catches_everything", line, file)
        elif (match["text"] or match["raw"]) and PLACES.search(match[0]):
            findings.add("reads_process_files", line, file)


def _word(match: re.Match[str], text: str, previous: str, line: int, findings: Findings, file: str) -> None:
    word = match["word"]
    rest = text[match.end() : match.end() + 40].lstrip()
    before = text[max(0, match.start() - 2) : match.start()]
    if word in _CALLS and rest.startswith("(") and not before.endswith((".", "->")):
        findings.add(_CALLS[word], line, file)
    elif word == "constructor" and previous in ("__attribute__", "gnu"):
        findings.add("runs_at_load", line, file)
    elif word in _STD and before == "::" and previous == "std":
        findings.add("starts_threads", line, file)


def _include(text: str, line: int, findings: Findings, file: str) -> None:
    name = re.split(r"[<\"]", text, maxsplit=1)[1].rstrip('>"').strip()
    if name in _INCLUDES:
        findings.add(_INCLUDES[name], line, file)
