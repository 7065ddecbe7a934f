"""The browsable schema. Swagger UI sets styles from its script, so this page alone may have inline styles."""

from typing import Any

from csp.decorators import csp_replace
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView


@method_decorator(
    csp_replace(
        {
            "default-src": ["'none'"],
            "script-src": ["'self'"],
            "style-src": ["'self'", "'unsafe-inline'"],
            "img-src": ["'self'", "data:"],
            "connect-src": ["'self'"],
            "frame-ancestors": ["'none'"],
            "base-uri": ["'none'"],
        }
    ),
    name="dispatch",
)
class SchemaPage(SpectacularSwaggerSplitView):
    """Swagger UI from our own files."""

    url_name = "api:schema"
    throttle_classes: Any = ()
