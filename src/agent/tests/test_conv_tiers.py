"""The lower tiers give what the native call gives."""
import itertools
import random
import threading
import unittest

from support_conv import same, whole  # finds the package, too
import torch
from fpt_agent import tiers

NATIVE3, NATIVE2 = torch.conv3d, torch.conv2d
#: Largest error in float64 of what `numbers` gives. Whatever the order, a sum of n products no larger than 1/16 in
#: all is off by n * n / 16 roundings (2 ** -53) at most: for the 192 products of the largest case, on both sides, 5e-13.
EXACT = 1e-12
ALL = list(itertools.product(
    (1, 2, (2, 1, 1), (3, 2, 1)), (0, 1, (2, 1, 1), (0, 3, 2)), (1, (2, 1, 1), (1, 2, 3)), (1, 2),
    ((1, 1, 1), (3, 3, 3), (2, 4, 4), (3, 1, 1), (1, 3, 3))))


def numbers(*shape, seed):
    """float64, from -1/4 to 1/4, the same on every machine."""
    return (torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) - 0.5) / 2


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
    x = numbers(*shape, seed=seed)
    w = numbers(outputs, inputs // groups, *kernel, seed=seed + 1000)
    b = numbers(outputs, seed=seed + 2000) if dice.random() < 0.5 else None
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
        x = numbers(2, 4, 7, 9, 10, seed=1)
        tried = 0
        for stride, padding, dilation, groups, kernel in ALL:
            w = numbers(6, 4 // groups, *kernel, seed=2)
            b = numbers(6, seed=3)
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
            x = numbers(1, 2, 6, 7, 8, seed=1)
            w = numbers(3, 2, *kernel, seed=2)
            args = (x, w, None, 1, word, dilation, 1)
            want = NATIVE3(*args)
            for name, way in ways(budget_for(x, w, 2)).items():
                self.check(name, way(*args), want, args)

    def test_unbatched_one_tap_and_all_padding(self):
        x = numbers(2, 5, 6, 7, seed=1)
        for shape, padding in (((3, 2, 1, 3, 3), 0), ((3, 2, 3, 3, 3), 1), ((3, 2, 1, 1, 1), (4, 0, 0)),
                               ((3, 2, 2, 1, 1), (7, 0, 0))):
            w = numbers(*shape, seed=2)
            for stride in (1, 2, (20, 1, 1)):
                args = (x, w, None, stride, padding, 1, 1)
                want = NATIVE3(*args)
                for name, way in ways(budget_for(x, w, 1)).items():
                    self.check(name, way(*args), want, args)

    def test_conv2d_in_parts(self):
        for stride, padding, dilation, groups in itertools.product((1, 2, (2, 3)), (0, 1, "same"), (1, 2), (1, 2)):
            if padding == "same" and stride != 1:
                continue
            x, w = numbers(2, 4, 11, 9, seed=1), numbers(6, 4 // groups, 3, 2, seed=2)
            args = (x, w, None, stride, padding, dilation, groups)
            for budget in (1, 3000, 1 << 30):
                got = tiers.nocudnn(torch, NATIVE2, *args, budget=budget)
                self.check("nocudnn", got, NATIVE2(*args), args)

    def test_complex_and_int_keep_their_type(self):
        x = torch.complex(whole(1, 1, 2, 3, 4, 4), whole(2, 1, 2, 3, 4, 4))
        w = torch.complex(whole(3, 2, 2, 2, 2, 2), whole(4, 2, 2, 2, 2, 2))
        want = NATIVE3(x, w, None, 1, 0, 1, 1)
        got = tiers.cpu(torch, NATIVE3, x, w, None, 1, 0, 1, 1)
        self.assertEqual(got.dtype, want.dtype)
        self.assertTrue(same(torch.view_as_real(got), torch.view_as_real(want)))


class Precision(unittest.TestCase):
    """Bounds in the types that a card works in, for each value: the conversion of each temporal tap and of the result to
    the type, and the sum of the products in float32 in any order."""

    def test_bounds(self):
        for dtype, channels in itertools.product((torch.float32, torch.bfloat16, torch.float16), (4, 32)):
            x = torch.randn(1, channels, 5, 12, 12, generator=torch.Generator().manual_seed(3)).to(dtype)
            w = (torch.randn(8, channels, 3, 3, 3, generator=torch.Generator().manual_seed(4)) / channels).to(dtype)
            b = torch.randn(8, generator=torch.Generator().manual_seed(5)).to(dtype)
            exact = x.double(), w.double(), b.double()
            want = NATIVE3(*exact, 1, 1, 1, 1)
            padded = torch.nn.functional.pad(exact[0], (0, 0, 0, 0, 1, 1))
            taps = sum(NATIVE3(padded[:, :, k: k + 5], exact[1][:, :, k: k + 1], None, 1, (0, 1, 1)).abs() for k in range(3))
            flow = NATIVE3(*(t.abs() for t in exact), 1, 1, 1, 1)
            one, single = torch.finfo(dtype).eps / 2, torch.finfo(torch.float32).eps / 2
            # 1 % for what roundings of roundings add
            bound = 1.01 * (one * (taps + want.abs()) + (channels * 27 + 3) * single * flow)
            for name, way in ways(budget_for(x, w, 2)).items():
                got = way(x, w, b, 1, 1, 1, 1)
                self.assertEqual(got.dtype, dtype)
                over = ((got.double() - want).abs() / bound).max().item()
                self.assertLessEqual(over, 1, (name, dtype, channels))

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
        x, w = whole(1, 1, 4, 24, 8, 8), whole(2, 3, 4, 3, 3, 3)
        largest = []

        def spy(x, w, b, stride, padding, dilation, groups):
            y = NATIVE3(x, w, b, stride, padding, dilation, groups)
            largest.append(x.element_size() * w.shape[1] * w.shape[2:].numel() * y.shape[2:].numel())
            return y

        frame = 4 * 4 * 27 * 64
        for budget in (frame * 5, frame, frame // 3, frame // 64, 1):
            largest.clear()
            got = tiers.nocudnn(torch, spy, x, w, None, 1, 1, 1, 1, budget=budget)
            self.assertTrue(same(got, NATIVE3(x, w, None, 1, 1, 1, 1)))
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
            x, w = numbers(2, 4, 6, 7, 7, seed=1).requires_grad_(), numbers(4, 4 // groups, 2, 3, 3, seed=2).requires_grad_()
            b = numbers(4, seed=3).requires_grad_()
            rest = (stride, padding, dilation, groups)
            want = NATIVE3(x, w, b, *rest)
            up = numbers(*want.shape, seed=4)
            wanted = torch.autograd.grad(want, (x, w, b), up)
            for frames in (0.3, 2):
                for name, way in ways(budget_for(x, w, frames)).items():
                    got = torch.autograd.grad(way(x, w, b, *rest), (x, w, b), up)
                    for one, other in zip(got, wanted):
                        # sums of up to 588 products
                        self.assertLessEqual((one - other).abs().max().item(), 1e-11, name)

    def test_only_the_weight(self):
        x, w = numbers(1, 2, 3, 4, 4, seed=1), numbers(2, 2, 3, 3, 3, seed=2).requires_grad_()
        for name, way in ways(100).items():
            self.assertTrue(torch.autograd.gradcheck(lambda w: way(x, w, None, 1, 1, 1, 1), (w,)), name)


class Autocast(unittest.TestCase):
    """The type that native gives under autocast."""

    def test_dtype(self):
        x, w, b = whole(1, 1, 4, 3, 8, 8, most=1), whole(2, 4, 4, 3, 3, 3), whole(3, 4)
        for given in (torch.float32, torch.float64, torch.bfloat16):
            for on in (True, False):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
                    args = (x.to(given), w.to(given), b.to(given), 1, 1, 1, 1)
                    want = NATIVE3(*args)
                    for name, way in ways(budget_for(x, w, 1)).items():
                        got = way(*args)
                        self.assertEqual(got.dtype, want.dtype, (name, given, on))
                        self.assertTrue(same(got, want), (name, given, on))

    def test_on_after_the_call(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            tiers.cpu(torch, NATIVE3, torch.ones(1, 1, 2, 3, 3), torch.ones(1, 1, 1, 1, 1), None, 1, 0, 1, 1)
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
        seen, inside, go = [], threading.Barrier(2, timeout=120), threading.Event()
        x, w = torch.zeros(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1)

        def first(*args):
            inside.wait()
            return NATIVE3(*args)

        def second(*args):
            inside.wait()
            go.wait(120)  # the first has left by now
            seen.append(torch._C._get_cudnn_enabled())
            return NATIVE3(*args)

        threads = [threading.Thread(target=lambda f=f: tiers.nocudnn(torch, f, x, w, None, 1, 0, 1, 1))
                   for f in (first, second)]
        for t in threads:
            t.start()
        threads[0].join(120)
        go.set()
        threads[1].join(120)
        self.assertEqual(seen, [False])
        self.assertTrue(torch._C._get_cudnn_enabled())
        self.assertEqual(tiers.off.depth, 0)


if __name__ == "__main__":
    unittest.main()
