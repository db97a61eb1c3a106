"""Hunyuan3D: a picture becomes a mesh (`hy3dgen.shapegen`), the mesh gets its texture (`hy3dgen.texgen`).

Its own package, and the copies that ComfyUI nodes carry, whose pipelines are told by the names of their weights: there
the delight step and the views of the texture are diffusers pipelines without anything of `hy3dgen` around.
"""
import itertools

from . import memory, phases
from .hooks import around, on, wrap
from .state import state

_numbers = itertools.count(1)
#: Phases that a pipeline of diffusers has as a whole, by a part of the name of its weights.
OWN = (("delight", "delight"), ("hunyuan3d-paint", "texture"), ("hunyuan3dpaint", "texture"))


def own_phase(pipe):
    """`delight` or `texture` where a diffusers pipeline is that step, whatever it does inside; None."""
    around_it = state.spans()[-1:]
    if around_it and around_it[0] in ("delight", "texture"):
        return around_it[0]
    about = getattr(pipe, "config", None)
    name = str(getattr(about, "_name_or_path", None) or getattr(pipe, "name_or_path", "")).lower()
    return next((phase for part, phase in OWN if part in name), None)


def job(owner, name, rest):
    """Makes each outermost call of `owner.name` a job; what has no phase of its own in it is `rest`."""

    def make(plain):
        def wrapper(*args, **kwargs):
            with phases.Job("%s-%d" % (owner.__name__, next(_numbers)), phase=rest):
                return plain(*args, **kwargs)

        return wrapper

    wrap(owner, name, make)


def each(module, names, method, phase, **more):
    """The method of these classes, where the module has them, in a span of the phase."""
    for name in names:
        owner = getattr(module, name, None)
        if isinstance(owner, type):
            around(owner, method, phase, **more)


@on("hy3dgen.shapegen.pipelines")
def shape(module):
    """From the picture to the mesh: its own pipeline, not of diffusers."""
    names = ("Hunyuan3DDiTPipeline", "Hunyuan3DDiTFlowMatchingPipeline")
    each(module, names, "encode_cond", "text_encode", after=memory.stage)
    each(module, names, "_export", "vae_decode", before=memory.stage, after=memory.stage, describe=phases.described(1, "latents"))
    each(module, names, "from_pretrained", "model_load", describe=phases.of_class)
    for name in names:
        owner = getattr(module, name, None)
        if isinstance(owner, type):
            job(owner, "__call__", "sampling")


@on("hy3dgen.shapegen.postprocessors")
def mesh(module):
    """Fewer faces, no crumbs: on the CPU, for minutes where the mesh is large."""
    each(module, ("FloaterRemover", "DegenerateFaceRemover", "FaceReducer", "MeshSimplifier"), "__call__", "mesh_post")


@on("hy3dgen.texgen.pipelines")
def paint(module):
    """Renders, views, baking: all that has no other phase is the texture."""
    owner = getattr(module, "Hunyuan3DPaintPipeline", None)
    if isinstance(owner, type):
        each(module, (owner.__name__,), "from_pretrained", "model_load", describe=phases.of_class)
        job(owner, "__call__", "texture")


@on("hy3dgen.texgen.utils.uv_warp_utils")
def unwrap(module):
    """The mesh is cut open and laid flat."""
    around(module, "mesh_uv_wrap", "mesh_post")


@on("hy3dgen.texgen.utils.dehighlight_utils")
def delight(module):
    """Light and shadow are taken out of the picture."""
    each(module, ("Light_Shadow_Remover",), "__call__", "delight")


@on("hy3dgen.texgen.utils.multiview_utils")
def views(module):
    """The views that are baked."""
    each(module, ("Multiview_Diffusion_Net",), "__call__", "texture")
