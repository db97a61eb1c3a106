"""What the stand-ins of this folder share: layers, a transformer, the command line, faults, the video.

Own code with tiny random weights. Only the shapes are those of the programs: which classes have `encode` and `decode`, what these
take and give, and where the loop of steps is.
"""
import argparse
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tiny_faults  # noqa: E402


class CausalConv3d(nn.Conv3d):
    """A convolution that sees no later frame."""

    def __init__(self, channels_in, channels_out, size=3):
        super().__init__(channels_in, channels_out, size)
        self.ahead, self.around = self.kernel_size[0] - 1, self.kernel_size[1] // 2

    def forward(self, x):
        return super().forward(F.pad(x, (self.around,) * 4 + (self.ahead, 0)))


class Upsample(nn.Module):
    """Twice the height and width by a convolution of pictures; with `frames` also of each frame but the first two."""

    def __init__(self, width, frames):
        super().__init__()
        self.frames, self.conv = frames, nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        if self.frames:
            x = torch.cat([x[:, :, :1], x[:, :, 1:].repeat_interleave(2, dim=2)], dim=2)
        batch, width, count, height, breadth = x.shape
        x = x.transpose(1, 2).reshape(batch * count, width, height, breadth)
        x = self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))
        return x.reshape(batch, count, width, 2 * height, 2 * breadth).transpose(1, 2)


class Decoder(nn.Module):
    """Latents to pixels: 8 times the height and width, 4 (n - 1) + 1 frames of n."""

    def __init__(self, channels, width=8, out=3):
        super().__init__()
        self.conv_in = CausalConv3d(channels, width)
        self.blocks = nn.ModuleList([CausalConv3d(width, width), Upsample(width, True), CausalConv3d(width, width),
                                     Upsample(width, True), CausalConv3d(width, width), Upsample(width, False)])
        self.conv_out = CausalConv3d(width, out)

    def forward(self, z):
        x = self.conv_in(z)
        for block in self.blocks:
            x = F.silu(block(x))
        return torch.tanh(self.conv_out(x))


class Encoder(nn.Module):
    """Pixels to twice the channels of the latents: mean and logarithm of the variance."""

    def __init__(self, channels, width=8, into=3):
        super().__init__()
        self.conv_in = CausalConv3d(into, width)
        self.blocks = nn.ModuleList([CausalConv3d(width, width) for _ in range(3)])
        self.conv_out = CausalConv3d(width, 2 * channels)

    def forward(self, x):
        x = self.conv_in(x)
        for at, block in enumerate(self.blocks):
            x = F.silu(block(x))[:, :, :, ::2, ::2]
            x = x[:, :, ::2] if at < 2 else x
        return self.conv_out(x)


class Transformer(nn.Module):
    """A patch embedding by conv3d, one block, and back."""

    def __init__(self, channels, width=16):
        super().__init__()
        self.patch_embedding = nn.Conv3d(channels, width, (1, 2, 2), (1, 2, 2))
        self.block = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.head = nn.Linear(width, 4 * channels)

    def forward(self, x, t):
        batch, channels, frames, height, width = x.shape
        tokens = self.patch_embedding(x).flatten(2).transpose(1, 2) + t
        out = self.head(tokens + self.block(tokens)).transpose(1, 2)
        out = out.reshape(batch, channels, 2, 2, frames, height // 2, width // 2)
        return out.permute(0, 1, 4, 5, 2, 6, 3).reshape(x.shape)


def statistics(channels):
    """Mean and standard deviation of each channel, as WAN's latents are normalised by."""
    g = torch.Generator().manual_seed(7)
    return torch.randn(channels, generator=g) * 0.3, torch.rand(channels, generator=g) + 1.0


def arguments(description, more=None):
    """The command line."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--out", default="outputs")
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--step-seconds", type=float, default=0.05)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--seed", type=int, default=0)
    if more is not None:
        more(p)
    tiny_faults.add_arguments(p)
    p.set_defaults(fault_section=1)
    return p.parse_args()


def noise(args, channels, ratio=8, frames=3):
    """What sampling begins with: one clip without a batch, [C, T, H, W]."""
    g = torch.Generator().manual_seed(args.seed)
    return torch.randn(channels, frames, args.size // ratio, args.size // ratio, generator=g)


def sample(args, faults, model, latent):
    """The loop of steps, as these programs have it: over a tensor of times."""
    faults.phase("sampling", 1)
    timesteps = torch.linspace(1000, 0, args.steps + 1)[:-1]
    for t in tqdm(timesteps):
        latent = latent - model(latent.unsqueeze(0), t / 1000).squeeze(0) / args.steps
        time.sleep(args.step_seconds)
    return latent


def finish(args, faults, name, pixels):
    """Writes the video, [C, T, H, W] in -1 to 1; its path."""
    faults.phase("save", 1)
    os.makedirs(args.out, exist_ok=True)
    frames = ((pixels.float().clamp(-1, 1) + 1) * 127.5).to(torch.uint8).permute(1, 2, 3, 0).contiguous()
    return tiny_faults.write_video(os.path.join(args.out, name + ".mp4"), frames, 16)


def main(args, name, generate):
    """Runs `generate(args, faults)`, which gives the pixels of one clip."""
    torch.manual_seed(args.seed)
    with torch.inference_mode(), tiny_faults.Faults(args) as faults:
        path = finish(args, faults, name, generate(args, faults))
    print("wrote", path, flush=True)
