"""Named tuples like those of `typing`, whose classes are created in a tenth of the time.

`typing.NamedTuple` compiles every annotation and a constructor when a class is created. A lint of one file creates more
than 200 classes and calls half of them, and this was a sixth of its time. Here annotations stay text, and a constructor
is compiled when its class is first called.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 -- type checkers know this one
else:
    try:
        from _collections import _tuplegetter as make_getter  # what `collections` uses, with the same substitute
    except ImportError:
        from operator import itemgetter

        def make_getter(index: int, doc: str | None) -> property:
            """Return what reads an item of a tuple."""
            return property(itemgetter(index), doc=doc)

    class _NamedTupleType(type):
        """Creates the class of a named tuple: the annotations of its body are the fields."""

        def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if bases[0] is tuple or bases[0] is not NamedTuple:
                # `NamedTuple` itself, or a subclass of a named tuple, which keeps the fields.
                return super().__new__(mcs, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if fields[len(fields) - len(defaults) :] != tuple(defaults):
                message = f"a field of `{name}` without a default follows one with a default"
                raise TypeError(message)
            for index, field in enumerate(fields):
                body[field] = make_getter(index, None)
            body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return super().__new__(mcs, name, bases, body)

    class NamedTuple(tuple, metaclass=_NamedTupleType):
        """A tuple with names for its items; the annotations of a subclass are the names."""

        __slots__ = ()

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Compile the constructor, which replaces this one, and call it."""
            owner = next(base for base in cls.__mro__ if "_fields" in base.__dict__)
            owner.__new__ = _compile_constructor(owner)
            return owner.__new__(cls, *args, **kwargs)

        @classmethod
        def _make(cls, values: Any) -> Self:
            result = tuple.__new__(cls, values)
            if len(result) != len(cls._fields):
                message = f"Expected {len(cls._fields)} arguments, got {len(result)}"
                raise TypeError(message)
            return result

        def _replace(self, /, **changes: Any) -> Self:
            result = tuple.__new__(type(self), map(changes.pop, self._fields, self))
            if changes:
                message = f"Got unexpected field names: {[*changes]!r}"
                raise ValueError(message)
            return result

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    def _compile_constructor(owner: type) -> Any:
        """Return the constructor of a class, as `collections.namedtuple` compiles it."""
        names = "".join(f", {field}" for field in owner._fields)
        # The names of fields are identifiers of our own code.
        constructor = eval(f"lambda _cls{names}: _create(_cls, ({names[2:]}{',' * bool(names)}))")  # noqa: S307
        constructor = type(_compile_constructor)(constructor.__code__, {"_create": tuple.__new__}, "__new__")
        constructor.__defaults__ = tuple(owner._field_defaults.values()) or None
        constructor.__qualname__ = f"{owner.__qualname__}.__new__"
        return constructor
