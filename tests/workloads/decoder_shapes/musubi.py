#!/usr/bin/env python3
"""The shape of musubi-tuner's WAN: the object that holds the model moves between devices, and is made after the sampling only."""
import torch
from torch import nn

import common


class CausalVideoModel(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encoder, self.decoder = common.Encoder(channels), common.Decoder(channels)
        self.conv2 = common.CausalConv3d(channels, channels, 1)

    @property
    def device(self):
        return next(self.parameters()).device

    def encode(self, x, scale):
        mu = self.encoder(x).chunk(2, dim=1)[0]
        return (mu - scale[0].view(1, -1, 1, 1, 1)) * scale[1].view(1, -1, 1, 1, 1)

    def decode(self, z, scale):
        z = z / scale[1].view(1, -1, 1, 1, 1) + scale[0].view(1, -1, 1, 1, 1)
        x = self.conv2(z)
        # frame by frame in the program; the stand-in has no caches
        return self.decoder(x)


class VideoCodec:
    def __init__(self, channels=16):
        mean, std = common.statistics(channels)
        self.scale = [mean, 1.0 / std]
        self.model = CausalVideoModel(channels).eval().requires_grad_(False)

    def to_device(self, device):
        self.model.to(device)
        self.scale = [one.to(device) for one in self.scale]

    def decode(self, zs):
        return [self.model.decode(u.unsqueeze(0), self.scale).float().clamp_(-1, 1).squeeze(0) for u in zs]


def generate(args, faults):
    latent = common.sample(args, faults, common.Transformer(16), common.noise(args, 16))
    vae = VideoCodec()
    vae.to_device(torch.device("cpu"))
    faults.phase("decode", 1)
    return vae.decode(latent.unsqueeze(0))[0]


if __name__ == "__main__":
    common.main(common.arguments(__doc__), "musubi", generate)
