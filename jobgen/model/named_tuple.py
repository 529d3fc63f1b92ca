"""Named tuples like those of `typing`, whose classes are created in a tenth of the time.

`typing.NamedTuple` compiles each annotation and a constructor when the class is created. A short run of jobgen creates
some 160 classes and uses a few of them, and this was a sixth of its time. Here annotations stay text, and a constructor
is compiled when the class is first called.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 -- type checkers know this one
else:
    # `collections`, `functools` and `typing` take longer to import than help takes to print.
    from _collections import _tuplegetter as make_getter

    _CODES = {}
    """The code of constructors by their number of fields: it differs in the names of the fields only."""

    class _NamedTupleType(type):
        """Creates the class of a named tuple: the annotations of its body are the fields."""

        def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if bases[0] is tuple or bases[0] is not NamedTuple:
                # The class below, or a class that adds methods to a named tuple, or values that follow from its fields.
                return super().__new__(mcs, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if fields[len(fields) - len(defaults) :] != tuple(defaults):
                message = f"a field of `{name}` without a default follows one with a default"
                raise TypeError(message)
            made = {"__slots__": (), **body, "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            made.update((field, make_getter(index, None)) for index, field in enumerate(fields))
            return super().__new__(mcs, name, bases, made)

    class NamedTuple(tuple, metaclass=_NamedTupleType):
        """A tuple with names for its items; the annotations of a subclass are the names."""

        __slots__ = ()

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Compile the constructor, which replaces this one, and call it."""
            owner = next(each for each in cls.__mro__ if "_fields" in each.__dict__)
            owner.__new__ = _compile_constructor(owner)
            return owner.__new__(cls, *args, **kwargs)

        @classmethod
        def _make(cls, values: Any) -> Self:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                message = f"Expected {len(cls._fields)} arguments, got {len(made)}"
                raise TypeError(message)
            return made

        def _replace(self, /, **changes: Any) -> Self:
            made = tuple.__new__(type(self), map(changes.pop, self._fields, self))
            if changes:
                message = f"Got unexpected field names: {[*changes]!r}"
                raise ValueError(message)
            return made

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    def _compile_constructor(owner: type) -> Any:
        """Return the constructor of a class; compiled code takes its arguments faster than code for any class."""
        count = len(owner._fields)
        if count not in _CODES:
            names = "".join(f", field{number}" for number in range(count))
            made = eval(f"lambda cls{names}: create(cls, ({names[2:]}{',' * bool(count)}))")  # noqa: S307 -- numbers
            _CODES[count] = made.__code__
        code = _CODES[count].replace(co_varnames=("cls", *owner._fields), co_name="__new__")
        defaults = tuple(owner._field_defaults.values()) or None
        made = type(_compile_constructor)(code, {"create": tuple.__new__}, "__new__", defaults)
        made.__qualname__ = f"{owner.__qualname__}.__new__"
        return made
