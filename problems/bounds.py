"""What bounds a time, as people are told it: the judge's word for links is `nvlink`, wherever they are."""

from problems.models import Target


def bound_on(bound: str, target: Target) -> str:
    """Return what bounds a time on a target: the ranks of a CPU have links, but no NVLink."""
    return "link" if bound == "nvlink" and target.spec.get("device") == "cpu" else bound
