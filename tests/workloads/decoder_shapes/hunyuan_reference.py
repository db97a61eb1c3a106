#!/usr/bin/env python3
"""The shape of HunyuanVideo's reference code: an autoencoder of its own on diffusers' base classes. The caller divides by the
scaling factor; tiles in space and time are switched on by methods; the result is an object."""
import functools
from types import SimpleNamespace

import torch
from diffusers import ConfigMixin, ModelMixin
from diffusers.configuration_utils import register_to_config

import common


def with_hook(method):
    """Stands for accelerate's decorator: a function around the method."""

    @functools.wraps(method)
    def around(self, *args, **kwargs):
        return method(self, *args, **kwargs)

    return around


class AutoencoderKLCausal3D(ModelMixin, ConfigMixin):
    @register_to_config
    def __init__(self, latent_channels=16, scaling_factor=0.476986):
        super().__init__()
        self.encoder, self.decoder = common.Encoder(latent_channels), common.Decoder(latent_channels)
        self.quant_conv = common.CausalConv3d(2 * latent_channels, 2 * latent_channels, 1)
        self.post_quant_conv = common.CausalConv3d(latent_channels, latent_channels, 1)
        self.use_spatial_tiling = False
        self.tile_sample_min_size, self.tile_latent_min_size, self.tile_overlap_factor = 256, 32, 0.25

    def enable_tiling(self, use_tiling=True):
        self.use_spatial_tiling = use_tiling

    @with_hook
    def encode(self, x, return_dict=True):
        return SimpleNamespace(latents=self.quant_conv(self.encoder(x)).chunk(2, dim=1)[0])

    def _decode(self, z):
        return self.decoder(self.post_quant_conv(z))

    def spatial_tiled_decode(self, z):
        size = self.tile_latent_min_size
        rows = []
        for y in range(0, z.shape[-2], size):
            rows.append(torch.cat([self._decode(z[..., y:y + size, x:x + size]) for x in range(0, z.shape[-1], size)], dim=-1))
        return torch.cat(rows, dim=-2)

    @with_hook
    def decode(self, z, return_dict=True, generator=None):
        tiled = self.use_spatial_tiling and max(z.shape[-2:]) > self.tile_latent_min_size
        pixels = self.spatial_tiled_decode(z) if tiled else self._decode(z)
        return SimpleNamespace(sample=pixels) if return_dict else (pixels,)


def generate(args, faults):
    vae = AutoencoderKLCausal3D().eval().requires_grad_(False)
    vae.enable_tiling(args.tiled)
    latent = common.sample(args, faults, common.Transformer(16), common.noise(args, 16))
    faults.phase("decode", 1)
    z = latent.unsqueeze(0) / vae.config.scaling_factor
    return vae.decode(z, return_dict=False, generator=None)[0][0]


if __name__ == "__main__":
    common.main(common.arguments(__doc__, lambda p: p.add_argument("--tiled", action="store_true")), "hunyuan_reference", generate)
