"""Request bodies and their fields, whose refusals say what would be taken."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from portal.core.query import MOST_NAMED, none_of

UNKNOWN_FIELD = "unknown_field"


class ChoiceField(serializers.ChoiceField):
    """One of some words; another is refused with the list of them."""

    default_error_messages = {"invalid_choice": '"{input}" is none of: {choices}.'}  # noqa: RUF012

    def to_internal_value(self, data: Any) -> Any:
        """Return the choice."""
        if data == "" and self.allow_blank:
            return ""
        if str(data) not in self.choice_strings_to_values:
            self.fail("invalid_choice", input=str(data)[:40], choices=", ".join(map(str, self.choices)))
        return self.choice_strings_to_values[str(data)]


class BooleanField(serializers.BooleanField):
    """True or false."""

    default_error_messages = {"invalid": "Send true or false."}  # noqa: RUF012


class Body(serializers.Serializer[Any]):
    """A request body; a field that it does not have is refused, since it may be a slip of the pen."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the values; all that is wrong is told at once, since each answer costs the caller a round."""
        unknown = self._unknown(data)
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(data, Mapping) or not isinstance(error.detail, dict):
                raise
            found = {**error.detail, **unknown}
            sound = {name: data[name] for name in data if name not in found}
            raise serializers.ValidationError(found | self.also_wrong(sound)) from error
        if unknown:
            raise serializers.ValidationError(unknown | self.also_wrong(data))
        return values

    def also_wrong(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the service would refuse later, to be told with what is refused now.

        ``data`` holds no field that was refused: a database may not even take its text.
        """
        return {}

    def _unknown(self, data: Any) -> dict[str, Any]:
        """Name the fields that we would ignore, and those that there are."""
        names = [str(name) for name in data if name not in self.fields] if isinstance(data, Mapping) else []
        return {
            name[:60]: [serializers.ErrorDetail(none_of(name, self.fields), UNKNOWN_FIELD)]
            for name in names[:MOST_NAMED]
        }
