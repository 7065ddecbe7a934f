"""Ring at the evaluators' door: 'look, there is work for this target'. Never says what the work is."""

import logging

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

TASK = "evaluator.tasks.look"


def queue_of(target_slug: str) -> str:
    """Return the name of the Celery queue that the hosts of a target listen on."""
    return f"score.{target_slug}"


def ring(target_slug: str) -> bool:
    """Send the message by name. A broker that is down costs at most one tick: logged, never raised."""
    try:
        current_app.send_task(
            TASK,
            kwargs={"target": target_slug},
            queue=queue_of(target_slug),
            expires=settings.DOORBELL_EXPIRES_S,
            retry=False,
        )
    except (OperationalError, OSError) as error:
        logger.warning("doorbell not heard", extra={"target": target_slug, "error": str(error)})
        return False
    return True
