"""The VAE and the text encoder as nodes see them."""
import torch

from . import model_management, utils


class ModelPatcher:
    def __init__(self, model):
        self.model = model


class WanVAE(torch.nn.Module):
    """Nearest neighbours stand in for a decoder, so tiles must give the same picture as the whole."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv3d(3, 3, 1)

    def decode(self, latents):
        return latents[:, :3].float().repeat_interleave(8, -1).repeat_interleave(8, -2).repeat_interleave(4, 2)


class VAE:
    latent_dim = 3
    extra_1d_channel = None

    def __init__(self, device=None, dtype=None):
        self.first_stage_model = WanVAE()
        self.working_dtypes = [torch.bfloat16, torch.float32]
        self.device = model_management.vae_device() if device is None else device
        self.vae_dtype = model_management.vae_dtype(self.device, self.working_dtypes) if dtype is None else dtype
        self.patcher = ModelPatcher(self.first_stage_model)
        self.tiles = None

    def spacial_compression_decode(self):
        return 8

    def decode(self, samples_in, vae_options={}):
        model_management.load_models_gpu([self.patcher], memory_required=1)
        self.tiles = None
        return self.first_stage_model.decode(samples_in).movedim(1, -1)

    def decode_tiled_(self, samples, tile_x, tile_y, overlap):
        """A picture: thrice, with tiles as they are, lower and wider, higher and narrower."""
        whole = self.first_stage_model.decode(samples.unsqueeze(2))[:, :, 0]
        bar = utils.ProgressBar(3)
        for _, narrow in ((tile_x, tile_y), (tile_x * 2, tile_y // 2), (tile_y * 2, tile_x // 2)):
            if narrow - overlap <= 0:
                raise ValueError("tiles of %d with an overlap of %d do not advance" % (narrow, overlap))
            bar.update(1)
        return whole

    def decode_tiled(self, samples, tile_x=None, tile_y=None, overlap=None, tile_t=None, overlap_t=None):
        model_management.load_models_gpu([self.patcher], memory_required=1)
        self.tiles = (tile_x, tile_y, overlap, tile_t, overlap_t)
        if samples.ndim == 4:
            return self.decode_tiled_(samples, tile_x, tile_y, overlap).movedim(1, -1)
        step = tile_y - overlap
        rows = [self.first_stage_model.decode(samples[..., top:top + step, :])
                for top in range(0, samples.shape[-2], step)]
        return torch.cat(rows, dim=-2).movedim(1, -1)

    def encode(self, pixel_samples):
        model_management.load_models_gpu([self.patcher])
        return pixel_samples.movedim(-1, 1)[..., ::8, ::8]


class CLIP:
    def encode_from_tokens(self, tokens, return_pooled=False, return_dict=False):
        return torch.zeros(1, len(tokens), 4)
