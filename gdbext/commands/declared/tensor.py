"""Tensors of the program."""

from __future__ import annotations

from typing import Tuple

from gdbext.commands.declaration import Argument, Command

_RANKS = (
    Argument("--ranks", "ranks such as 0-3,7 or all", "RANKS", completes="ranks"),
    Argument("--all-ranks", "on all attached ranks", flag=True),
)
_RAW = (
    Argument("--dtype", "element type at an address: fp16, bf16, int4, fp8_e4m3fn, ...", "TYPE", completes="dtype"),
    Argument("--shape", "shape at an address, such as 2,3", "N,N"),
    Argument("--strides", "strides in elements, if the tensor is not contiguous", "N,N"),
    Argument(
        "--where",
        "where the memory is: cpu, pinned, gpu or managed (default: by the memory map)",
        "PLACE",
        completes="cpu|pinned|gpu|managed",
    ),
    Argument("--gpu-core", "read values on the GPU from this GPU core file (.nvcudmp)", "FILE", completes="file"),
    Argument(
        "--as",
        "what is at an address: torch (a TensorImpl), pyobject, ggml, ggml_cgraph, or the name of a type",
        "TYPE",
        completes="torch|pyobject|ggml|ggml_cgraph",
    ),
    *_RANKS,
)
_EXPRESSION = Argument(
    "expression", "an expression of the program, or an address with --dtype and --shape", "EXPR", completes="expression"
)
_WITH_INDEX = Argument(
    "expression", "an expression, and an index such as [0, :, -3:]", "EXPR [INDEX]", completes="expression"
)


def _row(
    name: str,
    summary: str,
    body: str,
    tail: Argument,
    description: str = "",
    examples: Tuple[str, ...] = (),
    arguments: Tuple[Argument, ...] = _RAW,
) -> Command:
    return Command(
        summary,
        gdb=f"llm-tensor {name}",
        body=f"gdbext.commands.tensor:{body}",
        category="data",
        arguments=arguments,
        tail=tail,
        description=description,
        examples=examples,
        repeats=name == "p",
        options_behind=True,
    )


COMMANDS = (
    Command(
        "Show and compare tensors of the program",
        gdb="llm-tensor",
        category="data",
        description=(
            "Tensors of torch, FasterTransformer, RTP-LLM, TurboMind, TensorRT-LLM, ggml, MindSpore and numpy, and "
            "raw memory."
        ),
        prefix=True,
    ),
    _row(
        "p",
        "Print a tensor, or a part of it, as numpy does",
        "print_values",
        _WITH_INDEX,
        "Prints only the edges of large tensors. An index selects a part, and gdbext reads only that part. It calls "
        "no function in the program. Options may follow the expression. In a Python process, an expression may also be "
        "a name of the selected Python frame; py2:NAME is one of frame py2.",
        (
            "llm-tensor p input_tensors",
            "llm-tensor p self.kv[3][0, :4]",
            'llm-tensor p input_tensors["hidden_states"] [0, -3:, :8]',
            'llm-tensor p cgraph["blk.0.attn_q.weight"] [0, :8]',
            "llm-tensor p $rdi --as torch",
            'llm-tensor p arg2["input_ids"]',
            "llm-tensor p $rsi --as fastertransformer::TensorMap",
            "llm-tensor p 0x7f3210000000 --dtype bf16 --shape 4,128",
        ),
    ),
    _row("info", "Describe a tensor, without its values", "info", _EXPRESSION),
    _row(
        "stats", "Count NaN, infinities and zeros; print minimum, maximum, mean and a histogram", "stats", _WITH_INDEX
    ),
    _row(
        "hash",
        "Print a digest of dtype, shape and values, to compare tensors",
        "hash_",
        _WITH_INDEX,
        examples=("llm-tensor hash weight --all-ranks",),
    ),
    _row(
        "save",
        "Write a tensor to a .npy or .safetensors file",
        "save",
        Argument(
            "expression", "an expression, perhaps an index, and the file", "EXPR [INDEX] FILE", completes="expression"
        ),
        "With several ranks, {rank} in the name stands for the rank number.",
        ("llm-tensor save hidden hidden.npy", "llm-tensor save hidden [0] /tmp/hidden-{rank}.npy --all-ranks"),
    ),
    _row(
        "diff",
        "Compare two tensors (in the program or in files), or one tensor across ranks",
        "diff",
        Argument(
            "expression",
            "two expressions or files, or one expression with --all-ranks",
            "A B [INDEX]",
            completes="expression",
        ),
        "An index after a space applies to both tensors; one without a space applies to the tensor before it. "
        "Files are .npy, .safetensors and torch's .pt; FILE:NAME is one of several tensors in a file. `gdbext "
        "dump ls` finds dumps.",
        (
            "llm-tensor diff expected actual [0, :8] --rtol 1e-3",
            "llm-tensor diff cache[0] cache[1]",
            "llm-tensor diff weight --all-ranks",
            "llm-tensor diff self.weight --all-ranks",
            "llm-tensor diff rank0/Pass3.pt:model.norm rank1/Pass3.pt:model.norm",
        ),
        (*_RAW, Argument("--rtol", "relative tolerance", "X"), Argument("--atol", "absolute tolerance", "X")),
    ),
    _row(
        "list",
        "List the tensors of the selected frame",
        "list_",
        Argument("expression", "options may follow here", "OPTIONS", nargs="?"),
        "Lists arguments, locals and members of `this`, also inside maps, vectors and structs; without debug "
        "information what the parameters, registers and stack lead to, for the releases in docs/tensors.md.",
        arguments=(
            *_RANKS,
            Argument("--python", "list the tensors of the thread's Python frames", flag=True),
        ),
    ),
)
