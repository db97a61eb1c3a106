"""Sampling, by the common nodes and by guiders."""
import torch
from tqdm.auto import trange

from . import model_management, utils


class CFGGuider:
    def __init__(self, patcher):
        self.patcher = patcher

    def sample(self, noise, latent_image, sampler, sigmas, denoise_mask=None, callback=None, disable_pbar=False,
               seed=None):
        model_management.load_models_gpu([self.patcher])
        bar = utils.ProgressBar(int(sigmas))
        for i in trange(int(sigmas), disable=disable_pbar):
            noise = noise * 0.9
            bar.update_absolute(i + 1, int(sigmas))
        if torch.isnan(noise).any():
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
                               "and cpu!")
        return noise


def sample(model, noise, positive, negative, cfg, device, sampler, sigmas, model_options={}, latent_image=None,
           denoise_mask=None, callback=None, disable_pbar=False, seed=None):
    return CFGGuider(model).sample(noise, latent_image, sampler, sigmas, denoise_mask, callback, disable_pbar, seed)
