"""The device of a rank, from what /proc shows."""

import pytest

from gdbext.discovery.proc.devices import device_of


@pytest.mark.parametrize(
    "local_rank, environ, open_files, device",
    [
        (1, {}, [], None),  # nothing says that there is a GPU
        (1, {}, ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"], "cuda:1"),
        (1, {"CUDA_VISIBLE_DEVICES": "4,5"}, [], "cuda:1 (GPU 5)"),
        (5, {"CUDA_VISIBLE_DEVICES": "5"}, [], "cuda:0 (GPU 5)"),
        (0, {"CUDA_VISIBLE_DEVICES": "GPU-1a2b3c4d-5e6f"}, [], "cuda:0 (GPU-1a2b3c4d)"),
        (None, {}, ["/dev/nvidia3"], "cuda:3"),
        (None, {}, ["/dev/nvidia0", "/dev/nvidia1"], None),
        (None, {"CUDA_VISIBLE_DEVICES": "2,3"}, ["/dev/nvidia3"], "cuda:1 (GPU 3)"),
        (7, {"CUDA_VISIBLE_DEVICES": "2,3"}, [], None),
        (0, {"CUDA_VISIBLE_DEVICES": ""}, [], None),
        (2, {}, ["/dev/davinci2", "/dev/davinci_manager"], "npu:2"),
        (1, {"HIP_VISIBLE_DEVICES": "6,7"}, ["/dev/kfd"], "cuda:1 (GPU 7)"),
    ],
)
def test_device(local_rank, environ, open_files, device):
    assert device_of(local_rank, environ, open_files) == device
