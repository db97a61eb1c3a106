"""The convolution in flight is told wherever the program makes it: no pipeline, phase or job need be around it."""
import unittest

from support_vault import Supervisor, kill, until

#: A script's own upscaler behind everything else: its third call of conv2d never comes back.
UPSCALER = """
import ctypes, sys, threading, torch
from torch.utils._python_dispatch import TorchDispatchMode
class Hangs(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "conv" in str(func):
            self.calls += 1
            if self.calls == 3:
                while True: ctypes.CDLL(None).pause()
        return func(*args, **(kwargs or {}))
conv = torch.nn.Conv2d(3, 3, 3, padding=1)
def upscale():
    with torch.no_grad(), Hangs():
        x = torch.rand(1, 3, 64, 64)
        for _ in range(5):
            x = WAY
if "thread" in sys.argv:
    thread = threading.Thread(target=upscale); thread.start(); thread.join()
else:
    upscale()
"""


class InFlight(unittest.TestCase):
    def test_a_conv2d_outside_any_pipeline_is_told_until_it_ends(self):
        for way, where in (("conv(x)", "thread"), ("torch.nn.functional.conv2d(x, conv.weight, padding=1)", "main")):
            with self.subTest(way=way, where=where), Supervisor() as s:
                process = s.start("-c", UPSCALER.replace("WAY", way), where)
                self.addCleanup(kill, process)
                until(lambda: len([b for b in s.of("beat") if b["ops"]]) >= 2)
                kill(process)
                beats = s.of("beat")
                last = beats[-1]
                self.assertEqual([op["name"] for op in last["ops"]], ["conv2d"])
                (op,) = last["ops"]
                self.assertEqual((op["shape"], op["weight"], op["device"], op["tier"]), ([1, 3, 64, 64], [3, 3, 3, 3], "cpu", "native"))
                self.assertEqual((last["calls"], last["job"]), (3, None))
                ages = [b["ops"][0]["age_s"] for b in beats if b["ops"]]
                self.assertEqual(ages, sorted(ages))


if __name__ == "__main__":
    unittest.main()
