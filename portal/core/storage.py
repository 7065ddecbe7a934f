"""Files that live and die with a database row."""

import contextlib
from collections.abc import Iterator

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage


@contextlib.contextmanager
def stored(name: str, content: bytes) -> Iterator[str]:
    """Store `content`, yield the name it got, and remove the file again if the block raises.

    Wrap the whole `transaction.atomic()` in it: then neither a row without its file nor a file without
    its row is left behind, whichever of the two fails.
    """
    kept = default_storage.save(name, ContentFile(content))
    try:
        yield kept
    except BaseException:
        default_storage.delete(kept)
        raise
