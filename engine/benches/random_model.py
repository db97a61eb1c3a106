#!/usr/bin/env python3
"""Autoencoders of real width with random weights, as diffusers saves them, in half precision.

    python random_model.py hunyuan|wan21|wan22 FOLDER

Needs torch and diffusers.
"""
import sys

import torch
from diffusers import AutoencoderKLHunyuanVideo, AutoencoderKLWan

WAN22 = dict(
    base_dim=160, decoder_base_dim=256, z_dim=48, is_residual=True, in_channels=12, out_channels=12, patch_size=2,
    scale_factor_spatial=16, latents_mean=[0.0] * 48, latents_std=[1.0] * 48,
)


def build(kind):
    if kind == "hunyuan":
        return AutoencoderKLHunyuanVideo()
    if kind == "wan21":
        return AutoencoderKLWan()
    if kind == "wan22":
        return AutoencoderKLWan(**WAN22)
    sys.exit(__doc__)


if len(sys.argv) != 3:
    sys.exit(__doc__)
torch.manual_seed(7)
build(sys.argv[1]).to(torch.bfloat16).save_pretrained(sys.argv[2])
