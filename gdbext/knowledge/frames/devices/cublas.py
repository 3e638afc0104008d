"""cuBLAS and the other CUDA maths libraries: a call allocates work space and loads kernels on first use."""

from gdbext.knowledge.frame_precedence import OUTER
from gdbext.knowledge.row_kinds import FrameRule

RULES = (
    FrameRule(
        "cublas",
        "cublas",
        r"cublas(Lt|Xt)?[A-Z]\w*$",
        "libcublas 12 links the CUDA runtime statically, so no cuda* frame appears; fastertransformer_backend#28",
        rank=OUTER,
    ),
    FrameRule(
        "cuda-maths",
        "cublas",
        r"(cudnn[A-Z]|cufft[A-Z]|cusolver[A-Z]|cusparse[A-Z]|curand[A-Z]|cutensor[A-Z])\w*$",
        "same lazy loading as cuBLAS",
        rank=OUTER,
    ),
)
