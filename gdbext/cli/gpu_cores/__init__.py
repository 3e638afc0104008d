"""`gdbext gpucore`: GPU cores read, and the driver asked for them."""
