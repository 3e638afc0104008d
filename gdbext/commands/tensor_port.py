"""What the tensor commands may ask of the debugger. `inside_gdb/expressions/tensor_access.py` is the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Protocol, Tuple, TypeVar, Union

from gdbext.analysis.tensors.read_blocks import Read
from gdbext.commands.session_port import Session
from gdbext.model.errors import UsageError
from gdbext.model.tensor import TensorInfo, TensorList, TensorMapInfo

T = TypeVar("T")


@dataclass(frozen=True)
class Description:
    """What the user says about an expression that does not say it itself."""

    dtype: Optional[str] = None
    shape: Optional[Tuple[int, ...]] = None
    strides: Optional[Tuple[int, ...]] = None  # in elements
    where: Optional[str] = None
    type_name: Optional[str] = None  # what lies at the address: "torch", "ggml", "pyobject", or a type the program has


class OneTensor(UsageError):
    """What stands before the brackets at the end of an expression is one tensor: `index` selects in it."""

    def __init__(self, expression: str, index: str) -> None:
        super().__init__(f"{expression} is one tensor", f"{index} is an index of it: {expression} {index}")
        self.expression, self.index = expression, index


class TensorPort(Protocol):
    """Tensors of the selected inferior, thread and frame."""

    def evaluate(self, expression: str, description: Description) -> Union[TensorInfo, TensorMapInfo]:
        """What an expression of the program's language is. Raises GdbextError, OneTensor."""

    def read_of(self, info: TensorInfo) -> Read:
        """How to read the values of a tensor that `evaluate` gave."""

    def in_frame(self, python: bool) -> TensorList:
        """Every tensor that can be reached from the selected frame, or from the Python frames of the thread."""

    def with_gpu_core(self, path: str) -> TensorPort:
        """The same tensors, whose values on a GPU come out of a GPU core file. Raises GdbextError."""

    def on_rank(self, number: int, body: Callable[[], T]) -> T:
        """Run `body` with the inferior `number` selected, in the frame of the same function if it has one.

        What was selected comes back."""


class TensorSession(Session, Protocol):
    """The session of the tensor commands."""

    tensors: TensorPort
