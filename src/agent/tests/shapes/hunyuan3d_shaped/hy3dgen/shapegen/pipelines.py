"""A shape pipeline with the names and call shapes of Hunyuan3D's: not one of diffusers."""
import torch
from tqdm import tqdm


class Hunyuan3DDiTPipeline:
    @classmethod
    def from_pretrained(cls, path):
        return cls()

    def encode_cond(self, image, additional_cond_inputs, do_classifier_free_guidance, dual_guidance):
        return image.mean()

    def __call__(self, image=None, num_inference_steps=3):
        raise NotImplementedError

    def _export(self, latents, output_type="trimesh"):
        return latents.sum()


class Hunyuan3DDiTFlowMatchingPipeline(Hunyuan3DDiTPipeline):
    def __call__(self, image=None, num_inference_steps=3):
        cond = self.encode_cond(image=image, additional_cond_inputs={}, do_classifier_free_guidance=True, dual_guidance=False)
        latents = torch.zeros(1, 8, 4)
        for _ in tqdm(range(num_inference_steps), disable=True):
            latents = latents + cond
        return self._export(latents, "trimesh")
