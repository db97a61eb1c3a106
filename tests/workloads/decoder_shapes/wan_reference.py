#!/usr/bin/env python3
"""The shape of WAN's reference code: a plain object holds the model and decodes a list of clips; the model is handed the
statistics of the latents with each call. `--two` is the second version: 48 channels, 16 times the height and width."""
import torch
from torch import nn
from torch.nn import functional as F

import common


class WanVAE_(nn.Module):
    def __init__(self, channels, patch):
        super().__init__()
        self.channels, self.patch = channels, patch
        self.encoder = common.Encoder(channels, into=3 * patch ** 2)
        self.conv1 = common.CausalConv3d(2 * channels, 2 * channels, 1)
        self.conv2 = common.CausalConv3d(channels, channels, 1)
        self.decoder = common.Decoder(channels, out=3 * patch ** 2)

    def encode(self, x, scale):
        if self.patch > 1:
            frames = x.shape[2]
            x = F.pixel_unshuffle(x.transpose(1, 2).flatten(0, 1), self.patch).unflatten(0, (-1, frames)).transpose(1, 2)
        mu = self.conv1(self.encoder(x)).chunk(2, dim=1)[0]
        return (mu - scale[0].view(1, -1, 1, 1, 1)) * scale[1].view(1, -1, 1, 1, 1)

    def decode(self, z, scale):
        z = z / scale[1].view(1, -1, 1, 1, 1) + scale[0].view(1, -1, 1, 1, 1)
        x = self.decoder(self.conv2(z))
        if self.patch > 1:
            frames = x.shape[2]
            x = F.pixel_shuffle(x.transpose(1, 2).flatten(0, 1), self.patch).unflatten(0, (-1, frames)).transpose(1, 2)
        return x


class WanVAE:
    def __init__(self, channels=16, patch=1):
        mean, std = common.statistics(channels)
        self.scale = [mean, 1.0 / std]
        self.model = WanVAE_(channels, patch).eval().requires_grad_(False)

    def encode(self, videos):
        return [self.model.encode(u.unsqueeze(0), self.scale).float().squeeze(0) for u in videos]

    def decode(self, zs):
        return [self.model.decode(u.unsqueeze(0), self.scale).float().clamp_(-1, 1).squeeze(0) for u in zs]


def generate(args, faults):
    channels, patch = (48, 2) if args.two else (16, 1)
    model, vae = common.Transformer(channels), WanVAE(channels, patch)
    vae.encode([torch.zeros(3, 9, args.size, args.size)])
    latent = common.sample(args, faults, model, common.noise(args, channels, 8 * patch))
    faults.phase("decode", 1)
    return vae.decode([latent])[0]


if __name__ == "__main__":
    common.main(common.arguments(__doc__, lambda p: p.add_argument("--two", action="store_true")), "wan_reference", generate)
