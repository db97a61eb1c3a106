"""Programs, cards and default answers that the cases of this folder are built from.

The forms are casegen's (tests/cases/casegen.py). The literal messages are those that
the libraries print in public reports; numbers, names and orders are our own.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases"))
sys.dont_write_bytecode = True

from casegen import B, BLIP, C, GPUS, MIX, NA, R, Case  # noqa: E402,F401


def _amd(name, arch, vram, tbp, idle, busy, gtt=32000, **more):
    return dict(name="AMD " + name, vendor="amd", arch=arch, vram=vram, gtt=gtt, tbp=tbp, idle=idle, busy=busy, **more)


def _nv(name, arch, vram, tbp, idle, busy):
    return dict(name="NVIDIA GeForce " + name, vendor="nvidia", arch=arch, vram=vram, gtt=None, tbp=tbp, idle=idle, busy=busy)


GPUS.update(
    rx7600xt=_amd("Radeon RX 7600 XT", "gfx1102", 16368, 190, 10, 151),
    rx7900gre=_amd("Radeon RX 7900 GRE", "gfx1100", 16368, 260, 13, 241),
    w7900=_amd("Radeon PRO W7900", "gfx1100", 49136, 295, 24, 240, gtt=64000),
    mi100=_amd("Instinct MI100", "gfx908", 32752, 290, 36, 232, gtt=64000),
    strixpoint=_amd("Radeon 890M Graphics", "gfx1150", 512, 54, 7, 31, gtt=15860, apu=True),
    r780m=_amd("Radeon 780M Graphics", "gfx1103", 2048, 54, 6, 27, gtt=14900, apu=True),
    rtx3060=_nv("RTX 3060", "sm_86", 12288, 170, 13, 158),
    rtx5090=_nv("RTX 5090", "sm_120", 32607, 575, 28, 520),
)

FAST = {"MIOPEN_FIND_MODE": "FAST", "MIOPEN_FIND_ENFORCE": "NONE"}
STALLS = ["silent_hang", "find_stall", "spin_hang", "busy_idle"]
NO_HANG = STALLS + ["device_mismatch"]

# README, "Default action by verdict": action, tier, restart unasked
DEFAULT = {
    "silent_hang": ("retry_same", 1, True), "find_stall": ("fast_find", 1, True), "spin_hang": ("retry_same", 1, True),
    "busy_idle": ("retry_same", 1, True), "memory_fault": ("retry_same", 1, True), "blas_error": ("retry_same", 1, True),
    "gpu_reset": ("retry_same", 2, True), "no_algorithm": ("tiled_vae", 2, True), "gpu_oom": ("lower_settings", 2, True),
    "vram_spill": ("lower_settings", 2, True), "block_allocator": ("full_unload", 1, True), "offload_risk": ("full_unload", 1, False),
    "host_oom": ("free_memory", 2, True), "thrash": ("free_memory", 2, False), "pinned_memory": ("disable_pinned", 1, True),
    "miopen_db": ("reset_miopen_db", 1, True), "device_mismatch": ("fix_device_placement", 1, True),
    "dtype_mismatch": ("fp32_upcast", 2, True), "nan_output": ("fp32_upcast", 2, False),
    "download_stall": ("resume_download", 1, True), "crawl": ("wait", 0, False), "throttled": ("cool_down", 0, False),
    "gpu_unavailable": ("fix_environment", 4, False), "killed": ("retry_same", 1, False),
}
for v in ("gtt_exhausted", "permission_kfd", "no_kernel_image", "port_in_use", "missing_dependency", "corrupt_model", "disk_full",
          "cpu_fallback", "crash_segv", "app_error"):
    DEFAULT[v] = ("fix_environment", 4, False)
WAITS = ("loading_io", "download_wait", "compile_warmup", "cpu_phase")
WARN = ("throttled", "crawl", "offload_risk", "vram_spill", "cpu_fallback", "thrash")
CRITICAL = ("gpu_reset", "host_oom", "gpu_unavailable")


def fault(c, verdict, phase, onset, by, evidence, why, earliest=None, action=None, **more):
    """What must be said: the default action unless another is given."""
    if action is None and verdict == "silent_hang" and phase in ("vae_encode", "vae_decode"):
        action, more["env"] = ("fast_find", 1, True), FAST
    if action is None and verdict in ("gpu_oom", "vram_spill") and phase in ("vae_encode", "vae_decode"):
        action = ("tiled_vae", 2, True)
    if verdict == "find_stall":
        more.setdefault("env", FAST)
    act = action or DEFAULT[verdict]
    severity = "warn" if verdict in WARN else "critical" if verdict in CRITICAL else "error"
    c.expect(verdict, phase, severity, evidence, act[0], act[1], act[2], why, onset=onset,
             earliest=onset if earliest is None else earliest, detect_by=by, **more)
    return c


def calm(c, verdict, phase, evidence, why, **more):
    """Nothing may be raised or restarted."""
    more.setdefault("must_not", NO_HANG)
    wait = verdict in WAITS
    c.expect(verdict, phase, "info", evidence, "wait" if wait else "none", 0, False, why, false_alarm=True, **more)
    return c


def text(s, what=""):
    return ("console", s, what)


def gauge(what):
    return ("telemetry", "", what)


def bad(s):
    """A trace of torch: where it happened, then what."""
    return ["Traceback (most recent call last):"] + s


def ends(c, t, end, code=None, signal=None, mode="cpu1"):
    """The process is gone at t."""
    c.event(t, "exit", **({"code": code} if signal is None else {"signal": signal}))
    c.seg(min([t - 1] + [max(s[1] for s in c.segs)]), t + 1, mode)
    c.seg(t + 1, end, "dead", vram=520)


# ------------------------------------------------------------------- programs ----
def comfy26(c, ready, vram, ram, torch, dev, extra=(), p="[INFO] "):
    """ComfyUI of 2026: a level before each line, other words for loads."""
    c.out(1, p + "Checkpoint files will always be loaded safely.")
    for e in extra:
        c.out(1.5, e)
    c.out(2, p + "Total VRAM %d MB, total RAM %d MB" % (vram, ram), p + "pytorch version: " + torch,
          p + "Set vram state to: NORMAL_VRAM", p + "Device: cuda:0 %s : native" % dev, p + "Using pytorch attention",
          p + "Python version: 3.12.3", p + "ComfyUI version: 0.12.1", p + "ComfyUI frontend version: 1.38.4")
    c.out(ready - 2, "", p + "Import times for custom nodes:", p + "   0.0 seconds: custom_nodes/websocket_image_save.py")
    c.out(ready, p + "Starting server", "", p + "To see the GUI go to: http://127.0.0.1:8188")
    c.seg(0, ready, "startup")


def comfy_job(c, t, t_samp, model, vram, te="FluxClipModel_", p="", new=False):
    """A prompt, text encoder on the card, the model on the card at t_samp."""
    mid = t + (t_samp - t) // 2
    full = "loaded completely; %.2f MB usable, %.2f MB loaded, full load: True" if new else "loaded completely %.1f %.2f True"
    c.out(t, p + "got prompt", p + "Using pytorch attention in VAE", p + "Requested to load " + te)
    c.out(mid, p + full % (13120.4, 4897.05), p + "Requested to load " + model)
    c.out(t_samp - 1, p + full % (vram * 0.9, vram * 0.7))
    c.seg(t, mid - 3, "load", vram=min(vram, 5200))
    c.seg(mid - 3, mid, "encode")
    c.seg(mid, t_samp, "load", vram=vram)


def script(c, loaded, parts=7, vram=9000, first=(), desc="Loading pipeline components...: "):
    """A diffusers script up to the first step."""
    c.out(3, *(list(first) or ["Namespace(prompt='...', steps=30, out='out.mp4')"]))
    c.out(4, "torch 2.9.1, diffusers 0.36.0, transformers 4.57.3", "device: %s" % c.g["name"], "dtype: torch.bfloat16",
          "Keyword arguments {'dtype': torch.bfloat16} are not expected by the pipeline and will be ignored.",
          "You have disabled the safety checker; see the documentation before you publish results.",
          "`torch_dtype` is deprecated! Use `dtype` instead!", "The tokenizer you are loading might be slower than its fast version.",
          "seed: 1234")
    c.bar(8, loaded - 2, parts, desc=desc)
    c.seg(0, 8, "startup")
    c.seg(8, loaded, "load", vram=vram)


def a1111(c, ready, version="v1.10.1", args="--medvram --opt-sdp-attention", name="v1-5-pruned-emaonly"):
    c.out(1, "Python 3.10.14 (main, Apr  6 2024) [GCC 13.2.0]", "Version: " + version, "Launching Web UI with arguments: " + args)
    c.out(4, "no module 'xformers'. Processing without...", "No module 'xformers'. Proceeding without it.")
    c.out(6, "Loading weights [6ce0161689] from models/Stable-diffusion/%s.safetensors" % name)
    c.out(ready - 2, "Creating model from config: configs/v1-inference.yaml")
    c.out(ready, "Running on local URL:  http://127.0.0.1:7860", "", "To create a public link, set `share=True` in `launch()`.",
          "Startup time: %.1fs (prepare environment: 1.1s, import torch: 4.2s, import gradio: 1.0s, launch: 2.0s)." % ready,
          "Model loaded in 8.2s (load weights from disk: 1.3s, create model: 0.4s, apply weights to model: 2.2s).")
    c.seg(0, 6, "startup")
    c.seg(6, ready, "load", vram=3100)


def sdnext(c, ready, torch="2.9.1+rocm6.4", device="cuda"):
    s = "10:14:%02d-%06d "
    c.out(1, s % (1, 120331) + "INFO     Starting SD.Next", s % (1, 210004) + "INFO     Python: version=3.12.3 platform=Linux",
          s % (2, 443120) + "INFO     Torch: torch==%s torchvision==0.24.1" % torch)
    c.out(7, s % (7, 99120) + "INFO     Engine: backend=Backend.DIFFUSERS compute=rocm device=%s attention=\"Scaled-Dot-Product\" mode=no_grad" % device)
    c.out(ready - 6, s % (11, 441200) + "INFO     Load model: select=\"Diffusers/sdxl-base\"")
    c.bar(ready - 6, ready - 2, 7, desc="Loading pipeline components... ")
    c.out(ready, s % (18, 2210) + "INFO     Local URL: http://127.0.0.1:7860/", s % (18, 4410) + "INFO     Startup time: total=17.10 torch=5.1 launch=2.2")
    c.seg(0, 7, "startup")
    c.seg(7, ready, "load", vram=7200)


def kohya(c, t_train, steps=1600, vram=10400):
    c.out(2, "INFO     Loading settings from config.toml...", "INFO     prepare tokenizers", "INFO     update token length: 225",
          "INFO     loading model for process 0/1", "INFO     building U-Net", "INFO     loading U-Net from checkpoint")
    c.out(t_train - 8, "INFO     create LoRA network. base dim (rank): 32, alpha: 16", "INFO     use 8-bit AdamW optimizer | {}")
    c.out(t_train, "running training", "  num train images * repeats: 800", "  num epochs: 2", "  batch size per device: 1",
          "  total optimization steps: %d" % steps)
    c.seg(0, 6, "startup")
    c.seg(6, t_train, "load", vram=vram)


def train_bar(c, t0, t1, i0, i1, n=1600, loss=0.118):
    for k in range(i0, i1 + 1):
        t = t0 + (t1 - t0) * (k - i0) / float(max(1, i1 - i0))
        shown = loss if isinstance(loss, str) else "%.4f" % (loss - 0.0001 * k)
        c.raw(t, "\rsteps:  %2d%%|%s| %d/%d [%02d:%02d<1:12:09, 2.71s/it, avr_loss=%s]" % (100 * k // n, " " * 12, k, n, k * 3 // 60, k * 3 % 60, shown))


def hy3d(c, ready):
    c.out(1, "Namespace(model_path='tencent/Hunyuan3D-2mini', device='cuda', port=8080, low_vram_mode=True)")
    c.bar(4, ready - 4, 3, desc="Fetching 3 files: ")
    c.out(ready, "INFO:     Started server process [4711]", "INFO:     Waiting for application startup.", "INFO:     Application startup complete.",
          "INFO:     Uvicorn running on http://0.0.0.0:8080 (Press CTRL+C to quit)")
    c.seg(0, 4, "startup")
    c.seg(4, ready, "load", vram=6100)
