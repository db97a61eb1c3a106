"""Pre-flight against pretended torches; what is told once, and that no device is initialised."""
import sys
import types
import unittest

from support_mem import AgentTest

from fpt_agent import phases, preflight


def torch_like(version="2.11.0", hip=None, cuda="13.0", cudnn=True, sdp=("flash", "math"), arch="gfx1100", sm=(9, 0)):
    queue = []
    kernels = {name + "_sdp_enabled": (lambda on=name in sdp: on) for name in ("flash", "mem_efficient", "cudnn", "math")}
    torch = types.SimpleNamespace(
        __version__=version, version=types.SimpleNamespace(hip=hip, cuda=cuda), queue=queue, Tensor=object, nn=None,
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace(enabled=cudnn), cuda=types.SimpleNamespace(**kernels)),
        cuda=types.SimpleNamespace(
            _lazy_call=queue.append, device_count=lambda: 1, mem_get_info=lambda: (1, 2),
            get_device_properties=lambda index: types.SimpleNamespace(
                gcnArchName=arch + ":sramecc-", major=sm[0], minor=sm[1])))
    return torch


class Preflight(AgentTest):
    def use_torch(self, **more):
        torch = torch_like(**more)
        plain = preflight.torch_or_none
        preflight.torch_or_none = lambda: torch
        self.addCleanup(setattr, preflight, "torch_or_none", plain)
        return torch

    def pretend(self, name, **attributes):
        """A module in sys.modules for this test."""
        was = sys.modules.get(name, self)
        sys.modules[name] = module = types.SimpleNamespace(__name__=name, **attributes)
        self.addCleanup(lambda: sys.modules.pop(name) if was is self else sys.modules.__setitem__(name, was))
        return module

    def checks(self):
        return {one["name"]: one for message in self.sent("preflight") for one in message["checks"]}

    def test_versions_that_belong_together(self):
        self.use_torch(version="2.11.0+rocm7.1", hip="7.1", cuda=None)
        self.pretend("torchvision", __version__="0.26.0")
        preflight.tell(preflight.versions())
        self.assertEqual(self.checks()["torch"]["value"], "2.11.0+rocm7.1 (ROCm 7.1)")
        self.assertIs(self.checks()["torchvision"]["ok"], True)

    def test_versions_that_do_not(self):
        self.use_torch(version="2.11.0")
        self.pretend("torchvision", __version__="0.21.0")
        preflight.tell(preflight.versions())
        seen = self.checks()["torchvision"]
        self.assertIs(seen["ok"], False)
        self.assertEqual(seen["text"], "torchvision 0.21.0 was made for torch 2.6, this is torch 2.11.0")

    def test_no_writer(self):
        self.use_torch()
        self.assertEqual(preflight.writer(), [])  # nobody asked for torchvision
        self.pretend("torchvision.io")
        self.assertEqual(preflight.writer(), [])  # others import it and write by other ways
        preflight.program(self.pretend("diffusers_helper.utils"))
        self.assertIs(self.checks()["video_writer"]["ok"], False)

    def test_writer_without_pyav(self):
        self.pretend("torchvision.io", write_video=print)
        self.pretend("diffusers_helper.utils")
        plain = preflight.there
        self.addCleanup(setattr, preflight, "there", plain)
        for present in (False, True):
            preflight.there = lambda name: present
            self.assertIs(preflight.writer()[0]["ok"], present)

    def test_attention(self):
        plain = preflight.there
        self.addCleanup(setattr, preflight, "there", plain)
        preflight.there = lambda name: name == "sageattention"
        self.use_torch()
        self.assertEqual(preflight.attention()[0]["value"], "flash, math, sageattention")
        preflight.there = lambda name: False
        self.use_torch(sdp=("math",))
        self.assertIs(preflight.attention()[0]["ok"], False)

    def test_miopen_switched_off_before_a_job(self):
        torch = self.use_torch(hip="7.1", cuda=None)
        preflight.tell(preflight.miopen())
        self.assertIs(self.checks()["miopen"]["ok"], True)
        torch.backends.cudnn.enabled = False
        with phases.Job("a"):
            pass
        self.assertIs(self.checks()["miopen"]["ok"], False)
        self.use_torch(cudnn=False)  # CUDA: the flag is no MIOpen switch
        self.assertEqual(preflight.miopen(), [])

    def test_the_devices_checks_wait_for_its_use(self):
        torch = self.use_torch(sm=(7, 5))
        preflight.first(torch)
        self.assertEqual(self.messages, [])
        torch.queue[0]()
        seen = self.checks()
        self.assertEqual((seen["bfloat16"]["ok"], seen["bfloat16"]["value"]), (False, "sm_75"))
        self.assertIs(seen["context"]["ok"], True)

    def test_precision_of_amd_cards(self):
        for arch, able in (("gfx906", False), ("gfx90a", True), ("gfx1030", False), ("gfx1100", True),
                           ("gfx942", True), ("gfx1201", True)):
            torch = torch_like(hip="7.1", arch=arch)
            self.assertIs(preflight.precision(torch, 0)["ok"], able, arch)

    def test_a_dead_context_at_the_start(self):
        torch = self.use_torch()

        def dead():
            raise RuntimeError("HIP error: unspecified launch failure")

        torch.cuda.mem_get_info = dead
        preflight.device(torch)
        self.assertIs(self.checks()["context"]["ok"], False)

    def test_a_context_that_dies(self):
        preflight.watch("vae_decode", RuntimeError("HIP out of memory. Tried to allocate 2 GiB"))
        preflight.watch("vae_decode", RuntimeError("CUDA error: out of memory"))
        preflight.watch("vae_decode", RuntimeError("HIP error: invalid device function"))
        self.assertEqual(self.messages, [])
        preflight.watch("vae_decode", RuntimeError("HIP error: unspecified launch failure\nmore"))
        self.assertEqual(self.checks()["context"]["text"], "HIP error: unspecified launch failure")

    def test_told_once(self):
        self.use_torch()
        preflight.tell(preflight.versions())
        preflight.tell(preflight.versions())
        self.assertEqual(len(self.sent("preflight")), 1)


class RealTorch(AgentTest):
    def test_nothing_is_initialised(self):
        import torch

        preflight.first(torch)
        preflight.tell(preflight.static())
        self.assertFalse(torch.cuda.is_initialized())
        self.assertTrue(any(one["name"] == "torch" for m in self.sent("preflight") for one in m["checks"]))


if __name__ == "__main__":
    unittest.main()
