"""The wrapper: which errors are answered, by which tier, and what is told of it."""
import gc
import threading
import time
import unittest
import weakref

from support_conv import Failing, WithWrapper, counts, in_flight, same, whole
import torch
from fpt_agent import conv
from fpt_agent.plans import IN_A_ROW, MOST_TOLD, desk
from fpt_agent.state import state

F = torch.nn.functional
X, W = whole(1, 1, 2, 4, 5, 5), whole(2, 3, 2, 3, 3, 3)
WANT = torch.conv3d(X.double(), W.double(), None, 1, 1)
OOM = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError


def miopen():
    return RuntimeError("miopenStatusUnknownError")


class Answered(WithWrapper):
    """Errors of the library and lack of memory."""

    def test_each_wording(self):
        for text in ("miopenStatusUnknownError", "miopenStatusNotImplemented. This error may appear if you passed in a non-contiguous input.",
                     "No suitable algorithm was found to execute the required convolution", "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
                     "CuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cuDNN Frontend error: [cudnn_frontend] Error: No execution plans support the graph.",
                     "CUDNN_STATUS_INTERNAL_ERROR", "Unable to find an engine to execute this computation",
                     "Unable to find a valid cuDNN algorithm to run convolution",
                     "GET was unable to find an engine to execute this computation", "MIOpen Error: x"):
            self.put(conv3d=Failing(torch.conv3d, lambda: RuntimeError(text)))
            self.assertTrue(same(F.conv3d(X, W, padding=1), WANT), text)
            self.assertEqual(counts(), {"conv3d.native.failed": 1, "conv3d.split.tried": 1, "conv3d.split.ok": 1})

    def test_tier_by_tier(self):
        half = X.bfloat16(), W.bfloat16()
        below = Failing(torch.conv3d, miopen, when=lambda x: x.dtype != torch.float32)
        below2 = Failing(torch.conv2d, miopen, when=lambda x: x.dtype != torch.float32)
        self.put(conv3d=below, conv2d=below2)
        got = F.conv3d(*half, padding=1)
        self.assertEqual(got.dtype, torch.bfloat16)
        self.assertTrue(same(got, WANT))
        self.assertEqual(counts(), {
            "conv3d.native.failed": 1, "conv3d.split.tried": 1, "conv3d.split.failed": 1, "conv3d.nocudnn.tried": 1,
            "conv3d.nocudnn.failed": 1, "conv3d.cpu.tried": 1, "conv3d.cpu.ok": 1})
        calls = below.calls
        F.conv3d(*half, padding=1)
        self.assertEqual(below.calls, calls + 1)  # the CPU's alone
        self.assertEqual(counts()["conv3d.cpu.ok"], 2)
        F.conv3d(half[0][:, :, :3], half[1], padding=1)  # another shape begins at the top
        self.assertEqual(counts()["conv3d.native.failed"], 2)

    def test_cudnn_off_is_enough(self):
        self.put(conv3d=Failing(torch.conv3d, miopen, when=lambda x: torch.backends.cudnn.enabled),
                 conv2d=Failing(torch.conv2d, miopen))
        self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
        self.assertEqual(counts()["conv3d.nocudnn.ok"], 1)
        self.assertTrue(torch.backends.cudnn.enabled)

    def test_conv2d(self):
        self.put(conv2d=Failing(torch.conv2d, miopen, when=lambda x: torch.backends.cudnn.enabled))
        x, w = X[:, :, 0], W[:, :, 0]
        self.assertTrue(same(F.conv2d(x, w, padding=1), torch.conv2d(x, w, None, 1, 1)))
        self.assertEqual(counts(), {"conv2d.native.failed": 1, "conv2d.nocudnn.tried": 1, "conv2d.nocudnn.ok": 1})

    def test_memory_again_after_the_cache_is_empty(self):
        emptied, torch_empty = [], torch.cuda.empty_cache
        torch.cuda.empty_cache = lambda: emptied.append(1)
        self.addCleanup(setattr, torch.cuda, "empty_cache", torch_empty)
        self.put(conv3d=Failing(torch.conv3d, lambda: OOM("HIP out of memory"), times=1))
        self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
        self.assertEqual((emptied, counts()), ([1], {"conv3d.native.failed": 1}))
        plan = self.put(conv3d=Failing(torch.conv3d, lambda: OOM("HIP out of memory"), times=2))
        F.conv3d(X, W, padding=1)
        self.assertEqual((emptied, counts()["conv3d.split.ok"]), ([1, 1], 1))
        self.assertEqual(plan.memory.lasting, set())  # another attempt may have room

    def test_the_layer(self):
        self.put(conv3d=Failing(torch.conv3d, miopen))
        layer = torch.nn.Conv3d(2, 3, 3, padding="same")
        layer.load_state_dict({"weight": W, "bias": whole(3, 3)})
        with torch.inference_mode():
            want = torch.conv3d(X, layer.weight, layer.bias, 1, "same")
            self.assertTrue(same(layer(X), want))

    def test_parameter_as_input(self):
        self.put(conv3d=Failing(torch.conv3d, miopen))
        self.assertTrue(same(F.conv3d(torch.nn.Parameter(X), W, padding=1), WANT))
        self.assertEqual(counts()["conv3d.split.ok"], 1)

    def test_gradients_through_the_wrapper(self):
        for start in range(4):
            self.put(start=start)
            x, w = X.double().requires_grad_(), W.double().requires_grad_()
            got = torch.autograd.grad(F.conv3d(x, w, padding=1).square().sum(), (x, w))
            want = torch.autograd.grad(torch.conv3d(x, w, None, 1, 1).square().sum(), (x, w))
            for one, other in zip(got, want):
                self.assertLessEqual((one - other).abs().max().item(), 1e-10, start)

    def test_parameters_in_lists(self):
        self.put(start=1)
        got = F.conv3d(X, W, None, [1, 1, 1], [1, 1, 1], [1, 1, 1])
        self.assertTrue(same(got, WANT))
        self.assertEqual(counts()["conv3d.split.ok"], 1)

    def test_start_tier(self):
        for start, tier in enumerate(conv.TIERS):
            native = Failing(torch.conv3d, miopen, times=0)
            self.put(start=start, conv3d=native)
            self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
            self.assertEqual(native.calls, {"split": 0}.get(tier, 1), tier)
            self.assertEqual(counts().get("conv3d.%s.ok" % tier, 0), 0 if tier == "native" else 1)
            F.conv2d(X[:, :, 0], W[:, :, 0])
            self.assertNotIn("conv2d.%s.tried" % tier, counts())

    def test_no_tensor_is_kept(self):
        self.put(conv3d=Failing(torch.conv3d, lambda: OOM("HIP out of memory"), times=2))
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        x = X.clone()
        gone = weakref.ref(x)
        F.conv3d(x, W)
        del x
        self.assertIsNone(gone())


class InARow(WithWrapper):
    """A library that fails every shape is not asked for ever."""

    def shapes(self, many, first=1):
        for size in range(first, first + many):
            x = whole(size, 1, 2, 3, 3, size + 2)
            self.assertTrue(same(F.conv3d(x, W), torch.conv3d(x, W)))

    def test_new_shapes_begin_lower(self):
        native = Failing(torch.conv3d, lambda: RuntimeError("miopenStatusUnknownError at kernel %d" % native.calls))
        plan = self.put(conv3d=native)
        self.shapes(30)
        self.assertEqual(native.calls, IN_A_ROW)
        self.assertEqual(counts(), {"conv3d.native.failed": IN_A_ROW, "conv3d.native.left": 1, "conv3d.split.tried": 30,
                                    "conv3d.split.ok": 30})
        self.assertEqual(len(plan.memory.tiers), IN_A_ROW, "only what was seen to fail is learned")
        self.put(conv3d=native)  # another process asks anew
        self.shapes(1)
        self.assertEqual(native.calls, IN_A_ROW + 1)

    def test_a_shape_that_works_between_them_begins_the_count_anew(self):
        native = Failing(torch.conv3d, miopen, when=lambda x: x.shape[-1] % 4)
        self.put(conv3d=native)
        self.shapes(30)
        self.assertEqual((native.calls, counts()["conv3d.native.failed"]), (30, 22))
        self.assertNotIn("conv3d.native.left", counts())

    def test_what_worked_before_stays_native(self):
        native = Failing(torch.conv3d, miopen, when=lambda x: x.shape[-1] not in (4, 5))
        self.put(conv3d=native)
        self.shapes(1)
        self.shapes(2, 2)  # 4 and 5 work
        self.shapes(IN_A_ROW, 4)
        calls = native.calls
        self.shapes(2, 2)
        self.assertEqual(native.calls, calls + 2)
        self.shapes(1, 40)
        self.assertEqual(native.calls, calls + 2)

    def test_another_error_and_lack_of_memory_do_not_count(self):
        texts = ["miopenStatusUnknownError", "No suitable algorithm was found"]
        native = Failing(torch.conv3d, lambda: RuntimeError(texts[native.calls % 2]))
        self.put(conv3d=native)
        self.shapes(20)
        self.assertEqual(native.calls, 20)
        native = Failing(torch.conv3d, lambda: OOM("HIP out of memory"))
        self.put(conv3d=native)
        self.shapes(20)
        self.assertNotIn("conv3d.native.left", counts())

    def test_no_tier_is_left_out_below(self):
        # split worked for some of the eight: new shapes begin there, and fall further where it fails them
        self.put(conv3d=Failing(torch.conv3d, miopen, when=lambda x: torch.backends.cudnn.enabled),
                 conv2d=Failing(torch.conv2d, miopen, when=lambda x: x.shape[-1] > 6))
        self.shapes(12)
        self.assertEqual((counts()["conv3d.split.ok"], counts()["conv3d.nocudnn.ok"]), (4, 8))
        self.assertEqual(counts()["conv3d.native.failed"], IN_A_ROW)


class PassedOn(WithWrapper):
    """Errors that are the user's own, or after which nothing helps."""

    def test_dead_context(self):
        kinds = [RuntimeError("HIP error: an illegal memory access was encountered"),
                 RuntimeError("CUDA error: an illegal memory access was encountered"),
                 RuntimeError("miopenStatusUnknownError ... HIP error: unspecified launch failure"),
                 RuntimeError("CUDA error: device-side assert triggered; cuDNN error")]
        if hasattr(torch, "AcceleratorError"):
            kinds.append(torch.AcceleratorError("miopen", 1))
        for error in kinds:
            native, _ = self.raised(X, W, error)
            self.assertEqual((native.calls, counts()), (1, {}))

    def test_dead_in_a_lower_tier(self):
        native = Failing(torch.conv3d, miopen)
        dead = RuntimeError("HIP error: unspecified launch failure")
        self.put(conv3d=native, conv2d=Failing(torch.conv2d, dead))
        with self.assertRaises(RuntimeError) as caught:
            F.conv3d(X, W)
        self.assertIs(caught.exception, dead)
        self.assertEqual(native.calls, 1)

    def test_others(self):
        for error in (RuntimeError("shapes do not match"), KeyboardInterrupt(), ValueError("miopen"), TypeError("x")):
            native, caught = self.raised(X, W, error)
            self.assertEqual((native.calls, counts()), (1, {}))
            self.assertIsNone(caught.__context__)

    def test_malformed_calls_say_what_native_says(self):
        calls = [((X, None), {}), ((None, W), {}), ((X, W[:, :1]), {}), ((X, W, None, (1, 1)), {}), ((X, W, None, "a"), {}),
                 ((X, W), {"padding": "middle"}), ((X, W, None, 2, "same"), {}), ((X[0, 0], W), {}), ((X, W), {"groups": 2}),
                 ((X[:, :, :2], W), {}), ((X.double(), W), {}), ((), {}), ((X,), {}), ((X, W), {"strides": 1}),
                 ((X, W, None, 1, 0, 1, 1, 1), {}), ((X, W), {"weight": W}), ((X, W), {"stride": 1.5}), ((X, W), {"stride": (1, 1, 1.0)}),
                 ((X, W), {"groups": True}), ((X, W), {"bias": 1}), ((3, W), {}), ((X, W), {"padding": None}), ((X,), {"weight": "w"})]
        for start in range(4):
            self.put(start=start)
            for args, kwargs in calls:
                with self.assertRaises(Exception) as want:
                    torch.conv3d(*args, **kwargs)
                with self.assertRaises(type(want.exception)) as got:
                    if start == 3 and args and getattr(args[0], "dtype", None) == torch.float64:
                        raise want.exception  # the CPU tier widens both to float32: no error
                    F.conv3d(*args, **kwargs)
                if len(args) > 7 or kwargs.keys() & {"strides", "weight", "bias"}:
                    continue  # the words are for another way of writing it
                if start == 0 or type(want.exception) is TypeError:
                    self.assertEqual(str(got.exception), str(want.exception))

    def test_last_tier_fails_too(self):
        error = miopen()
        native = Failing(torch.conv3d, lambda: later if native.calls > 1 else error)
        later = RuntimeError("cuDNN error: CUDNN_STATUS_LATER")
        self.put(conv3d=native, conv2d=Failing(torch.conv2d, miopen))
        with self.assertRaises(RuntimeError) as caught:
            F.conv3d(X, W)
        self.assertIs(caught.exception, error)
        self.assertIs(error.__context__, later)
        seen, node = [], error
        while node is not None:  # no ring
            self.assertNotIn(node, seen)
            seen.append(node)
            node = node.__context__

    def test_watch(self):
        error = miopen()
        native, _ = self.raised(X, W, error, mode="watch")
        self.assertEqual((native.calls, counts()), (1, {"conv3d.native.failed": 1}))


class Told(WithWrapper):
    """Statistics, messages, the operation in flight."""

    def setUp(self):
        self.sent = []
        self.link_send = conv.link.send
        conv.link.send = lambda kind, **fields: self.sent.append((kind, fields))
        self.addCleanup(setattr, conv.link, "send", self.link_send)

    def test_once_for_each_shape_and_tier(self):
        self.put(conv3d=Failing(torch.conv3d, miopen))
        for _ in range(3):
            F.conv3d(X, W, padding=1)
        self.assertEqual([(kind, f["event"], f["tier"]) for kind, f in self.sent],
                         [("conv", "failed", "native"), ("conv", "chosen", "split")])
        self.assertEqual(self.sent[0][1]["shape"], (1, 2, 4, 5, 5))
        self.assertEqual(self.sent[0][1]["params"], {"stride": 1, "padding": 1, "dilation": 1, "groups": 1})
        self.assertEqual(self.sent[0][1]["message"], "miopenStatusUnknownError")
        self.assertEqual(counts()["conv3d.split.ok"], 3)

    def test_bounded(self):
        native = Failing(torch.conv3d, lambda: RuntimeError("miopenStatus" + "AB"[native.calls % 2]))
        self.put(conv3d=native)
        with torch.inference_mode():
            for size in range(3, 3 + MOST_TOLD):
                F.conv3d(torch.zeros(1, 1, 1, 1, size), torch.zeros(1, 1, 1, 1, 1))
        self.assertEqual(len(self.sent), MOST_TOLD)

    def test_operation_in_flight(self):
        seen, told = [], []

        def look(x, *args):
            seen.append(in_flight(state))
            told.extend(state.beat()["ops"])
            if len(seen) == 1:
                raise miopen()
            return torch.conv2d(x, *args) if x.dim() == 4 else torch.conv3d(x, *args)

        self.put(conv3d=look, conv2d=look)
        before = state.calls
        F.conv3d(X, W)
        self.assertEqual(state.calls, before + 1)
        self.assertEqual([[op[3] for op in ops] for ops in seen], [["native"]] + [["split"]] * 3)
        self.assertEqual(told[0], {"name": "conv3d", "shape": [1, 2, 4, 5, 5], "weight": [3, 2, 3, 3, 3], "dtype": "float32",
                                   "device": "cpu", "tier": "native", "age_s": told[0]["age_s"],
                                   "thread": threading.get_ident(), "tid": threading.get_native_id()})
        self.assertEqual(in_flight(state), [])
        self.assertEqual(state.beat()["ops"], [])

    def test_each_thread_has_its_own(self):
        inside, leave = threading.Barrier(3, timeout=120), threading.Barrier(3, timeout=120)

        def wait(*args):
            inside.wait()
            leave.wait()
            return torch.conv3d(*args)

        self.put(conv3d=wait)
        threads = [threading.Thread(target=F.conv3d, args=(X, W)) for _ in range(2)]
        for t in threads:
            t.start()
        inside.wait()
        told = state.beat()["ops"]
        time.sleep(0.02)
        later = state.beat()["ops"]
        leave.wait()
        for t in threads:
            t.join()
        self.assertEqual(len(told), 2)
        for first, then in zip(told, later):  # the age of the same call
            self.assertEqual(first["thread"], then["thread"])
            self.assertGreaterEqual(then["age_s"], first["age_s"] + 0.02)
        self.assertEqual({(o["name"], o["tier"], o["dtype"]) for o in told}, {("conv3d", "native", "float32")})

    def test_many_threads(self):
        self.put(conv3d=Failing(torch.conv3d, miopen))
        wrong = []

        def work(seed):
            for i in range(60):
                x = X[:, :, : 1 + (seed + i) % 4]
                got = F.conv3d(x, W, padding=1)
                if not same(got, torch.conv3d(x, W, None, 1, 1)):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((wrong, counts()["conv3d.split.ok"], in_flight(state)), ([], 360, []))
        self.assertTrue(torch.backends.cudnn.enabled)

    def test_nothing_is_looked_up_before_a_failure(self):
        self.put()
        self.assertTrue(desk.quick)
        self.put(start=1)
        self.assertFalse(desk.quick)
        native = Failing(torch.conv3d, miopen, times=1)
        self.put(conv3d=native)
        F.conv3d(X, W)
        self.assertFalse(desk.quick)
        # other shapes stay native, and are known after their first call
        F.conv3d(X[:, :, :3], W)
        self.assertEqual((native.calls, len(F.conv3d._fpt_conv.known)), (2, 1))


if __name__ == "__main__":
    unittest.main()
