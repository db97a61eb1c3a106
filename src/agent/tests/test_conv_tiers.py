"""The lower tiers give what the native call gives."""
import itertools
import random
import threading
import unittest

import support_conv  # noqa: F401  (finds the package)
import torch
from fpt_agent import tiers

NATIVE3, NATIVE2 = torch.conv3d, torch.conv2d
#: Largest error in float64.
EXACT = 1e-12
#: Largest error over the largest value of the result, for sums of up to 32 * 27 products. One rounding to the
#: type is its epsilon / 2; native sums in float32 and rounds once, and so do the tiers.
BOUNDS = {torch.float32: 2e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}
ALL = list(itertools.product(
    (1, 2, (2, 1, 1), (3, 2, 1)), (0, 1, (2, 1, 1), (0, 3, 2)), (1, (2, 1, 1), (1, 2, 3)), (1, 2),
    ((1, 1, 1), (3, 3, 3), (2, 4, 4), (3, 1, 1), (1, 3, 3))))


def ways(budget):
    """name -> function with the arguments of conv3d."""
    return {
        "split": lambda *a: tiers.split(torch, NATIVE2, *a),
        "nocudnn": lambda *a: tiers.nocudnn(torch, NATIVE3, *a, budget=budget),
        "cpu": lambda *a: tiers.cpu(torch, NATIVE3, *a),
    }


def budget_for(x, w, frames):
    """A column buffer for about so many frames of stride 1."""
    return max(1, int(x.element_size() * w.shape[1] * w.shape[2:].numel() * x.shape[-1] * x.shape[-2] * frames))


def random_case(seed):
    """Arguments of a conv3d that the native function takes, or None."""
    dice = random.Random(seed)
    torch.manual_seed(seed)
    groups = dice.choice((1, 1, 2, 3))
    inputs, outputs = groups * dice.randint(1, 3), groups * dice.randint(1, 3)
    shape = [dice.randint(1, 3), inputs, dice.randint(1, 9), dice.randint(1, 9), dice.randint(1, 9)]
    kernel = [dice.randint(1, 4) for _ in range(3)]
    stride = [dice.randint(1, 3) for _ in range(3)]
    dilation = [dice.randint(1, 3) for _ in range(3)]
    padding = dice.choice((None, None, None, "valid", "same"))
    if padding == "same":
        stride = [1, 1, 1]
    if padding is None:
        padding = [dice.randint(0, 3) for _ in range(3)]
    if dice.random() < 0.2:
        shape = shape[1:]
    x = torch.randn(shape, dtype=torch.float64)
    w = torch.randn([outputs, inputs // groups] + kernel, dtype=torch.float64)
    b = torch.randn(outputs, dtype=torch.float64) if dice.random() < 0.5 else None
    if dice.random() < 0.2 and x.dim() == 5:
        x = x.to(memory_format=torch.channels_last_3d)
    args = (x, w, b, stride, padding, dilation, groups)
    try:
        return args, NATIVE3(*args)
    except RuntimeError:
        return None


class Exactness(unittest.TestCase):
    """Equal to native in float64."""

    def check(self, name, got, want, args):
        self.assertEqual((got.shape, got.dtype, got.is_contiguous()), (want.shape, want.dtype, True), name)
        if got.numel():
            self.assertLessEqual((got - want).abs().max().item(), EXACT, (name, [tuple(a.shape) for a in args[:2]], args[3:]))

    def test_grid(self):
        torch.manual_seed(1)
        x = torch.randn(2, 4, 7, 9, 10, dtype=torch.float64)
        tried = 0
        for stride, padding, dilation, groups, kernel in ALL:
            w = torch.randn((6, 4 // groups) + kernel, dtype=torch.float64)
            b = torch.randn(6, dtype=torch.float64)
            args = (x, w, b, stride, padding, dilation, groups)
            try:
                want = NATIVE3(*args)
            except RuntimeError:
                continue
            tried += 1
            for name, way in ways(budget_for(x, w, (2, 0.3)[tried % 2])).items():
                self.check(name, way(*args), want, args)
        self.assertGreaterEqual(tried, 144)

    def test_random(self):
        tried = 0
        for seed in range(250):
            case = random_case(seed)
            if case is None:
                continue
            tried += 1
            args, want = case
            frames = (0.1, 0.4, 1, 2, 5)[seed % 5]
            for name, way in ways(budget_for(args[0], args[1], frames)).items():
                self.check("%s, seed %d" % (name, seed), way(*args), want, args)
        self.assertGreaterEqual(tried, 100)

    def test_words_for_padding(self):
        for word, kernel, dilation in itertools.product(("same", "valid"), ((3, 3, 3), (2, 4, 3), (1, 2, 1)), (1, 2)):
            x = torch.randn(1, 2, 6, 7, 8, dtype=torch.float64)
            w = torch.randn((3, 2) + kernel, dtype=torch.float64)
            args = (x, w, None, 1, word, dilation, 1)
            want = NATIVE3(*args)
            for name, way in ways(budget_for(x, w, 2)).items():
                self.check(name, way(*args), want, args)

    def test_unbatched_one_tap_and_all_padding(self):
        x = torch.randn(2, 5, 6, 7, dtype=torch.float64)
        for shape, padding in (((3, 2, 1, 3, 3), 0), ((3, 2, 3, 3, 3), 1), ((3, 2, 1, 1, 1), (4, 0, 0)),
                               ((3, 2, 2, 1, 1), (7, 0, 0))):
            w = torch.randn(shape, dtype=torch.float64)
            for stride in (1, 2, (20, 1, 1)):
                args = (x, w, None, stride, padding, 1, 1)
                want = NATIVE3(*args)
                for name, way in ways(budget_for(x, w, 1)).items():
                    self.check(name, way(*args), want, args)

    def test_conv2d_in_parts(self):
        for stride, padding, dilation, groups in itertools.product((1, 2, (2, 3)), (0, 1, "same"), (1, 2), (1, 2)):
            if padding == "same" and stride != 1:
                continue
            x, w = torch.randn(2, 4, 11, 9, dtype=torch.float64), torch.randn(6, 4 // groups, 3, 2, dtype=torch.float64)
            args = (x, w, None, stride, padding, dilation, groups)
            for budget in (1, 3000, 1 << 30):
                got = tiers.nocudnn(torch, NATIVE2, *args, budget=budget)
                self.check("nocudnn", got, NATIVE2(*args), args)

    def test_complex_and_int_keep_their_type(self):
        x, w = torch.randn(1, 2, 3, 4, 4, dtype=torch.complex64), torch.randn(2, 2, 2, 2, 2, dtype=torch.complex64)
        want = NATIVE3(x, w, None, 1, 0, 1, 1)
        got = tiers.cpu(torch, NATIVE3, x, w, None, 1, 0, 1, 1)
        self.assertEqual(got.dtype, want.dtype)
        self.assertTrue(torch.allclose(got, want, atol=1e-5))


class Precision(unittest.TestCase):
    """Bounds in the types that a card works in."""

    def test_bounds(self):
        torch.manual_seed(3)
        for dtype, bound in BOUNDS.items():
            for channels in (4, 32):
                x = torch.randn(1, channels, 5, 12, 12, dtype=torch.float64).to(dtype)
                w = (torch.randn(8, channels, 3, 3, 3, dtype=torch.float64) / channels).to(dtype)
                b = torch.randn(8, dtype=torch.float64).to(dtype)
                want = NATIVE3(x.double(), w.double(), b.double(), 1, 1, 1, 1)
                for name, way in ways(budget_for(x, w, 2)).items():
                    got = way(x, w, b, 1, 1, 1, 1)
                    self.assertEqual(got.dtype, dtype)
                    error = ((got.double() - want).abs().max() / want.abs().max()).item()
                    self.assertLessEqual(error, bound, (name, dtype, channels))

    def test_halves_are_summed_in_float32(self):
        # 2048 + 1 + 1: each step alone is lost in float16
        x = torch.tensor([2048.0, 1.0, 1.0], dtype=torch.float16).view(1, 1, 3, 1, 1)
        w = torch.ones(1, 1, 3, 1, 1, dtype=torch.float16)
        self.assertEqual(tiers.split(torch, NATIVE2, x, w, None, 1, 0, 1, 1).item(), 2050.0)

    def test_sums_in_their_own_type_where_memory_is_short(self):
        error = tiers.out_of_memory(torch)

        class Like:
            dtype = torch.float16

            def new_zeros(self, shape, dtype=None):
                if dtype is torch.float32:
                    raise error("HIP out of memory")
                return torch.zeros(shape, dtype=self.dtype)

        self.assertEqual(tiers.zeros(torch, Like(), (1, 2)).dtype, torch.float16)


class Budget(unittest.TestCase):
    """The column buffer of each part fits."""

    def test_parts_fit(self):
        x, w = torch.randn(1, 4, 24, 8, 8), torch.randn(3, 4, 3, 3, 3)
        largest = []

        def spy(x, w, b, stride, padding, dilation, groups):
            y = NATIVE3(x, w, b, stride, padding, dilation, groups)
            largest.append(x.element_size() * w.shape[1] * w.shape[2:].numel() * y.shape[2:].numel())
            return y

        frame = 4 * 4 * 27 * 64
        for budget in (frame * 5, frame, frame // 3, frame // 64, 1):
            largest.clear()
            got = tiers.nocudnn(torch, spy, x, w, None, 1, 1, 1, 1, budget=budget)
            self.assertTrue(torch.allclose(got, NATIVE3(x, w, None, 1, 1, 1, 1), atol=1e-5))
            self.assertLessEqual(max(largest), max(budget, 4 * 4 * 27), budget)
        largest.clear()
        tiers.nocudnn(torch, spy, x, w, None, 1, 1, 1, 1)
        self.assertEqual(len(largest), 1)  # 1 GiB holds it whole

    def test_on_the_cpu_the_default(self):
        self.assertEqual(tiers.free_budget(torch, torch.zeros(1)), tiers.BUDGET)


class Gradients(unittest.TestCase):
    """Equal through all tiers."""

    def test_equal(self):
        for stride, padding, dilation, groups in ((1, 1, 1, 1), (2, (2, 1, 0), 1, 2), (1, "same", 2, 1)):
            x = torch.randn(2, 4, 6, 7, 7, dtype=torch.float64, requires_grad=True)
            w = torch.randn(4, 4 // groups, 2, 3, 3, dtype=torch.float64, requires_grad=True)
            b = torch.randn(4, dtype=torch.float64, requires_grad=True)
            rest = (stride, padding, dilation, groups)
            want = NATIVE3(x, w, b, *rest)
            up = torch.randn_like(want)
            wanted = torch.autograd.grad(want, (x, w, b), up)
            for frames in (0.3, 2):
                for name, way in ways(budget_for(x, w, frames)).items():
                    got = torch.autograd.grad(way(x, w, b, *rest), (x, w, b), up)
                    for one, other in zip(got, wanted):
                        self.assertLessEqual((one - other).abs().max().item(), 1e-11, name)

    def test_only_the_weight(self):
        x = torch.randn(1, 2, 3, 4, 4, dtype=torch.float64)
        w = torch.randn(2, 2, 3, 3, 3, dtype=torch.float64, requires_grad=True)
        for name, way in ways(100).items():
            self.assertTrue(torch.autograd.gradcheck(lambda w: way(x, w, None, 1, 1, 1, 1), (w,)), name)


class Autocast(unittest.TestCase):
    """The type that native gives under autocast."""

    def test_dtype(self):
        x, w, b = torch.randn(1, 4, 3, 8, 8), torch.randn(4, 4, 3, 3, 3), torch.randn(4)
        for given in (torch.float32, torch.float64, torch.bfloat16):
            for on in (True, False):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
                    args = (x.to(given), w.to(given), b.to(given), 1, 1, 1, 1)
                    want = NATIVE3(*args)
                    for name, way in ways(budget_for(x, w, 1)).items():
                        got = way(*args)
                        self.assertEqual(got.dtype, want.dtype, (name, given, on))
                        self.assertLessEqual((got - want).abs().max() / want.abs().max(), 2e-2)

    def test_on_after_the_call(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            tiers.cpu(torch, NATIVE3, torch.randn(1, 1, 2, 3, 3), torch.randn(1, 1, 1, 1, 1), None, 1, 0, 1, 1)
            self.assertTrue(torch.is_autocast_enabled("cpu"))


class Flag(unittest.TestCase):
    """cudnn is off while any thread is inside, and as before afterwards."""

    def test_put_back_after_an_error(self):
        def broken(*_):
            raise RuntimeError("no")

        for was in (True, False):
            torch._C._set_cudnn_enabled(was)
            try:
                with self.assertRaises(RuntimeError):
                    tiers.nocudnn(torch, broken, torch.zeros(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1), None, 1, 0, 1, 1)
                self.assertEqual(torch._C._get_cudnn_enabled(), was)
            finally:
                torch._C._set_cudnn_enabled(True)

    def test_two_threads_overlap(self):
        seen, inside, go = [], threading.Barrier(2, timeout=20), threading.Event()
        x, w = torch.zeros(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1)

        def first(*args):
            inside.wait()
            return NATIVE3(*args)

        def second(*args):
            inside.wait()
            go.wait(20)  # the first has left by now
            seen.append(torch._C._get_cudnn_enabled())
            return NATIVE3(*args)

        threads = [threading.Thread(target=lambda f=f: tiers.nocudnn(torch, f, x, w, None, 1, 0, 1, 1))
                   for f in (first, second)]
        for t in threads:
            t.start()
        threads[0].join(20)
        go.set()
        threads[1].join(20)
        self.assertEqual(seen, [False])
        self.assertTrue(torch._C._get_cudnn_enabled())
        self.assertEqual(tiers.off.depth, 0)


if __name__ == "__main__":
    unittest.main()
