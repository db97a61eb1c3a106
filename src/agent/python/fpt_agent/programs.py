"""The programs that the agent knows, and the only list of them.

To add one: a file with its hooks (`hooks.on`), a line here, a stand-in of its call shapes in the tests. A program that has only decoders
of its own needs no file: `decoders.py` knows them by their shape.
"""


class Program:
    """What is loaded for a program. `packages`: what it imports and hardly anybody else, by which its parts come in time. `replay` hands
    finished work back, `hooks` tells jobs and phases, `jobs` keeps what a server has to do."""

    def __init__(self, name, packages, replay=(), hooks=(), jobs=()):
        self.name, self.packages, self.replay, self.hooks, self.jobs = name, packages, replay, hooks, jobs


PROGRAMS = (
    Program("framepack", ("diffusers_helper",), replay=("sections",), hooks=("framepack",), jobs=("jobs",)),
    Program("comfyui", ("comfy", "execution", "nodes", "server", "latent_preview"), hooks=("comfy",), jobs=("comfy_queue",)),
    Program("diffusers", ("diffusers",), replay=("steps",), hooks=("diffusers_hooks",)),
    Program("hunyuan3d", ("hy3dgen",), hooks=("hunyuan3d",)),
    Program("framepack-studio", ("modules",), jobs=("studio",)),
    Program("invokeai", ("invokeai",), hooks=("invokeai_jobs",)),
    Program("wangp", ("shared",), hooks=("wangp",)),
    Program("musubi-tuner", ("musubi_tuner",)),
)

#: Packages that any program may use.
COMMON = ("torch", "transformers", "accelerate", "torchvision", "gradio", "imageio", "av")


def packages():
    """Each asks for the parts when it is imported first."""
    return COMMON + tuple(name for program in PROGRAMS for name in program.packages)


def parts():
    """What is imported, in this order. A later one wraps the earlier: a section that is handed back counts as one, and latents are
    kept before anything is moved for their decode."""

    def of(stage):
        return tuple(name for program in PROGRAMS for name in getattr(program, stage))

    return ("phases",) + of("replay") + of("hooks") + ("conv", "memory", "vault", "decoders") + of("jobs") + ("placement", "preflight")
