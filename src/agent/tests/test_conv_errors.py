"""Which errors are the library's: torch's own words for them."""
import unittest

from support_conv import Failing, WithWrapper, counts, same, whole
import torch

F = torch.nn.functional
X, W = whole(1, 1, 2, 4, 5, 5), whole(2, 3, 2, 3, 3, 3)
WANT = torch.conv3d(X.double(), W.double(), None, 1, 1)


class Errors(WithWrapper):
    def test_words_that_only_name_a_library(self):
        for text in ("decode failed after a cuDNN error", "set MIOPEN_FIND_MODE: miopen is slow", "cudnn error", "no suitable algorithm for 3",
                     "Expected all tensors to be on the same device (while checking arguments for miopen_convolution)"):
            native, _ = self.raised(X, W, RuntimeError(text))
            self.assertEqual((native.calls, counts()), (1, {}), text)

    def test_what_the_programs_own_code_raises_below(self):
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        error, calls = RuntimeError("the callback saw a cuDNN error and gave up"), []

        class Above(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func in (F.conv3d, F.conv2d):
                    calls.append(func)
                    raise error
                return func(*args, **(kwargs or {}))

        class Below(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if "conv" in str(func):
                    calls.append(func)
                    raise error
                return func(*args, **(kwargs or {}))

        for mode in (Above, Below):
            self.put()
            calls.clear()
            error.__traceback__ = None
            with self.assertRaises(RuntimeError) as caught, mode():
                F.conv3d(X, W)
            self.assertIs(caught.exception, error)
            self.assertIsNone(error.__context__)
            self.assertEqual((len(calls), counts()), (1, {}), mode)

    def test_the_librarys_words_below_a_mode_of_the_programs(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if func is torch.ops.aten.convolution.default and args[0].dim() == 5 or "conv3d" in str(func):
                    raise RuntimeError("miopenStatusUnknownError")
                return func(*args, **(kwargs or {}))

        self.put()
        with Mode():
            self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
        self.assertEqual(counts()["conv3d.split.ok"], 1)


if __name__ == "__main__":
    unittest.main()
