"""Column types that Django lacks."""

from django.db import models


class CText(models.TextField):  # type: ignore[type-arg]  # generic in the stubs only, not in Django
    """Text in the C collation: names are compared byte by byte, with the same order on every machine."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs["db_collation"] = "C"
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # the arguments are passed on unchanged

    def deconstruct(self) -> tuple[str, str, list[object], dict[str, object]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("db_collation", None)
        return name, path, list(args), kwargs
