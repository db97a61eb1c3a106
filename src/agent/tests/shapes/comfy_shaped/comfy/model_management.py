"""Keeps the list of models on the card and makes room. The card is pretended: nothing is moved."""
import torch

GIB = 1 << 30
EXTRA_RESERVED_VRAM = GIB // 2
current_loaded_models = []
#: What was done, for the tests.
log = []


class InterruptProcessingException(Exception):
    pass


class LoadedModel:
    def __init__(self, model):
        self.model = model

    def __eq__(self, other):
        return self.model is other.model


def get_torch_device():
    return torch.device("cpu")


def get_free_memory(dev=None, torch_free_too=False):
    return (20 * GIB, GIB) if torch_free_too else 20 * GIB


def minimum_inference_memory():
    return GIB + EXTRA_RESERVED_VRAM


def vae_device():
    return get_torch_device()


def vae_dtype(device=None, allowed_dtypes=[]):
    return torch.bfloat16 if torch.bfloat16 in allowed_dtypes else torch.float32


def pin_memory(tensor):
    return True


def soft_empty_cache(force=False):
    log.append("empty")


def free_memory(memory_required, device, keep_loaded=[]):
    gone = [one for one in current_loaded_models if one not in keep_loaded]
    for one in gone:
        current_loaded_models.remove(one)
    log.append(("free", memory_required, [type(one.model.model).__name__ for one in gone]))
    return gone


def load_models_gpu(models, memory_required=0, force_patch_weights=False, minimum_memory_required=None,
                    force_full_load=False):
    for patcher in models:
        if LoadedModel(patcher) not in current_loaded_models:
            current_loaded_models.insert(0, LoadedModel(patcher))
            log.append(("load", type(patcher.model).__name__, minimum_inference_memory()))


def unload_all_models():
    free_memory(1e30, get_torch_device())
