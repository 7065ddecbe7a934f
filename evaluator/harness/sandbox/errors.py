"""What can go wrong in the sandbox layer: each is a fault of ours or of the host, never a verdict."""


class SandboxError(Exception):
    """Base of all sandbox faults."""


class SpawnFailed(SandboxError):
    """The sandbox could not be started (no bubblewrap, no free uid, no cgroup)."""


class FreezeFailed(SandboxError):
    """The job did not stop, or did not start again, within the limit."""


class KillFailed(SandboxError):
    """A process of the job was still there at the end of the limit."""
