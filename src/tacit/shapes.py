"""Shape annotations: jaxtyping's where it is installed, plain stand-ins where it is not.

The library needs torch alone. `Float[Tensor, "b m"]` documents every signature; with jaxtyping and beartype
installed (they are among the development requirements) the tests check each call against its annotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Shaped", "Tensor"]

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped
else:
    try:
        from jaxtyping import Bool, Float, Int, Shaped
    except ImportError:

        class _Unchecked:
            """Stands for `Float[Tensor, "b m"]` when nobody is there to check it."""

            def __class_getitem__(cls, item: Any) -> type:
                return item[0] if isinstance(item, tuple) else Tensor

        Bool = Float = Int = Shaped = _Unchecked
