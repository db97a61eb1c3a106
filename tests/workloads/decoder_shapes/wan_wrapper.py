#!/usr/bin/env python3
"""The shape of ComfyUI-WanVideoWrapper: nodes that hand a list of clips to an autoencoder of their own, which gives a list back.
ComfyUI's own VAE has no part in it."""
import common
from diffsynth import WanVideoVAE


class WrapperVAE(WanVideoVAE):
    stacked = False


class SamplerNode:
    def process(self, args, faults):
        latent = common.sample(args, faults, common.Transformer(16), common.noise(args, 16))
        return ({"samples": latent.unsqueeze(0)},)


class DecodeNode:
    def decode(self, vae, samples, tiled):
        more = {"tiled": tiled, "tile_size": (6, 6), "tile_stride": (4, 4)}
        return (vae.decode(samples["samples"], device="cpu", **more)[0],)


def generate(args, faults):
    vae = WrapperVAE()
    (samples,) = SamplerNode().process(args, faults)
    faults.phase("decode", 1)
    return DecodeNode().decode(vae, samples, args.tiled)[0]


if __name__ == "__main__":
    common.main(common.arguments(__doc__, lambda p: p.add_argument("--tiled", action="store_true")), "wan_wrapper", generate)
