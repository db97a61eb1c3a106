"""A texture pipeline with the names and call shapes of Hunyuan3D's."""
from .utils.dehighlight_utils import Light_Shadow_Remover
from .utils.multiview_utils import Multiview_Diffusion_Net
from .utils.uv_warp_utils import mesh_uv_wrap


class Hunyuan3DPaintPipeline:
    @classmethod
    def from_pretrained(cls, config):
        return cls(config)

    def __init__(self, config):
        self.models = {"delight_model": Light_Shadow_Remover(config), "multiview_model": Multiview_Diffusion_Net(config)}

    def bake_from_multiview(self, views):
        return sum(view.sum() for view in views)

    def __call__(self, mesh, image):
        images = [self.models["delight_model"](one) for one in image]
        mesh = mesh_uv_wrap(mesh)
        return mesh, self.bake_from_multiview(self.models["multiview_model"](images, [], []))
