"""AArch64, as far as the kernel's headers tell it: not tested on such a machine. Its code is not read yet."""
