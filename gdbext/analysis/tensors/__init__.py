"""Values of tensors in foreign memory: select, read, decode, count, compare, save. No numpy needed, used when there.

A caller brings a `TensorInfo` and a function `read(address, size) -> Optional[bytes]`; everything here works on those
two, so a live process, a core file, device memory and a test's bytes object are all the same.
"""
