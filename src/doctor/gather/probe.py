import sys

# `-c` puts the working directory first: what lies there (a json.py, say) must not run
WHOLE = sys.path[:]
sys.path[:] = [p for p in WHOLE if p]

import importlib.util
import json
import os
import re
import sysconfig

from importlib import metadata

NAMES = (
    "torch torchvision torchaudio torchcodec diffusers transformers accelerate av imageio "
    "imageio-ffmpeg xformers flash-attn sageattention triton pytorch-triton-rocm triton-rocm "
    "bitsandbytes gradio numpy rocm rocm-sdk-core"
).split()


def folder(name):
    # finding runs nothing of a package that is at the top
    clean = sys.path[:]
    sys.path[:] = WHOLE
    try:
        spec = importlib.util.find_spec(name)
        return list(spec.submodule_search_locations)[0]
    except Exception:
        return None
    finally:
        sys.path[:] = clean


def read(*parts):
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as f:
            return f.read(1 << 20)
    except OSError:
        return ""


def version(name):
    try:
        return next(iter(metadata.distributions(name=name, path=WHOLE))).version
    except Exception:
        return None


def torch():
    where = folder("torch")
    if where is None:
        return None
    text = read(where, "version.py")

    def value(name):
        found = re.search(r"(?m)^%s\s*(?::[^=\n]*)?=\s*(['\"])(.*?)\1" % name, text)
        return found.group(2) if found else None

    return {
        "version": value("__version__") or version("torch"),
        "hip": value("hip") or value("rocm"),
        "cuda": value("cuda"),
        "folder": where,
    }


def write_video():
    where = folder("torchvision")
    if where is None:
        return None
    # a stub that only hands on what is not there has no definition
    return re.search(r"(?m)^def write_video\b", read(where, "io", "video.py")) is not None


def rocm_sdk():
    found = []
    for place in WHOLE:
        try:
            names = sorted(os.listdir(place or "."))
        except OSError:
            continue
        found += [os.path.join(place, n) for n in names if n.startswith("_rocm_sdk_")]
    return found[:20]


def uv():
    # uv names itself there, and puts no pip into the environment
    return re.search(r"(?m)^uv\s*=", read(sys.prefix, "pyvenv.cfg")) is not None


def externally_managed():
    # PEP 668: only outside of virtual environments
    if sys.prefix != sys.base_prefix:
        return False
    return os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


answer = {
    "version": "%d.%d.%d" % sys.version_info[:3],
    "executable": sys.executable or "",
    "prefix": sys.prefix,
    "packages": {n: v for n, v in ((n, version(n)) for n in NAMES) if v},
    "torch": torch(),
    "write_video": write_video(),
    "uv": uv(),
    "externally_managed": externally_managed(),
    "rocm_sdk": rocm_sdk(),
}
sys.stdout.write("\n" + sys.argv[1] + json.dumps(answer) + "\n")
