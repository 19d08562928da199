"""The names that completion and `dir` show of a family: those that users want.

The others are the interface between a family and the sampler, see `components.component_family`.
They stay public, because units that are not components call them.
"""

from typing import ClassVar, override


class ListedNames:
    """Base class whose instances list few of their public names.

    Attributes
    ----------
    _listed : tuple of str
        Public names that `dir` shows; all private ones are shown too.
    """

    _listed: ClassVar[tuple[str, ...]] = ("from_data", "hyperparameters", "parameters")

    @override
    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name.startswith("_") or name in self._listed]
