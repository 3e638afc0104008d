"""For the top of `torchvision/_meta_registrations.py`: without its library, which wants a GPU's torch, nobody else
declares these."""

import torch

_operators = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
