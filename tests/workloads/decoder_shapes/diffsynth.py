#!/usr/bin/env python3
"""The shape of DiffSynth's video autoencoder: a module around a module, clips of a batch one by one, each whole or in tiles."""
import torch
from torch import nn
from tqdm import tqdm

import common


class VideoVAE_(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encoder, self.decoder = common.Encoder(channels), common.Decoder(channels)
        self.conv2 = common.CausalConv3d(channels, channels, 1)

    def encode(self, x, scale):
        mu = self.encoder(x).chunk(2, dim=1)[0]
        return (mu - scale[0].view(1, -1, 1, 1, 1)) * scale[1].view(1, -1, 1, 1, 1)

    def decode(self, z, scale):
        z = z / scale[1].view(1, -1, 1, 1, 1) + scale[0].view(1, -1, 1, 1, 1)
        return self.decoder(self.conv2(z))


class WanVideoVAE(nn.Module):
    """`stacked`: what comes out is one tensor; else a list of clips, as WanVideoWrapper has it."""

    stacked = True

    def __init__(self, channels=16):
        super().__init__()
        mean, std = common.statistics(channels)
        self.scale = [mean, 1.0 / std]
        self.model = VideoVAE_(channels).eval().requires_grad_(False)
        self.upsampling_factor = 8

    def tiled_decode(self, hidden_states, device, tile_size, tile_stride):
        _, _, frames, height, width = hidden_states.shape
        ratio = self.upsampling_factor
        sums = torch.zeros(1, 3, 4 * frames - 3, height * ratio, width * ratio)
        weights = torch.zeros(1, 1, 1, height * ratio, width * ratio)
        corners = [(y, x) for y in range(0, height, tile_stride[0]) for x in range(0, width, tile_stride[1])]
        for y, x in tqdm(corners, desc="VAE decoding"):
            part = hidden_states[..., y:y + tile_size[0], x:x + tile_size[1]].to(device)
            pixels = self.model.decode(part, self.scale)
            area = (..., slice(y * ratio, y * ratio + pixels.shape[-2]), slice(x * ratio, x * ratio + pixels.shape[-1]))
            sums[area] += pixels
            weights[area] += 1
        return (sums / weights).clamp_(-1, 1)

    def single_decode(self, hidden_state, device):
        return self.model.decode(hidden_state.to(device), self.scale).clamp_(-1, 1)

    def encode(self, videos, device, tiled=False, tile_size=(34, 34), tile_stride=(18, 16)):
        return torch.stack([self.model.encode(video.unsqueeze(0).to(device), self.scale).squeeze(0) for video in videos])

    def decode(self, hidden_states, device, tiled=False, tile_size=(34, 34), tile_stride=(18, 16)):
        videos = []
        for hidden_state in [one.to("cpu") for one in hidden_states]:
            hidden_state = hidden_state.unsqueeze(0)
            if tiled:
                video = self.tiled_decode(hidden_state, device, tile_size, tile_stride)
            else:
                video = self.single_decode(hidden_state, device)
            videos.append(video.squeeze(0))
        return torch.stack(videos) if self.stacked else videos


def generate(args, faults):
    vae = WanVideoVAE()
    vae.encode(torch.zeros(1, 3, 9, args.size, args.size), "cpu")
    latent = common.sample(args, faults, common.Transformer(16), common.noise(args, 16))
    faults.phase("decode", 1)
    more = {"tiled": True, "tile_size": (6, 6), "tile_stride": (4, 4)} if args.tiled else {}
    return vae.decode(latent.unsqueeze(0), device="cpu", **more)[0]


if __name__ == "__main__":
    common.main(common.arguments(__doc__, lambda p: p.add_argument("--tiled", action="store_true")), "diffsynth", generate)
