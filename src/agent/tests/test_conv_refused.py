"""What torch refuses is refused in its own words, whatever tier a call begins with."""
import unittest
import warnings

from support_conv import WithWrapper, counts, same, whole
import torch
import fpt_agent

F = torch.nn.functional
X, W = whole(1, 1, 2, 4, 4, 4), whole(2, 2, 2, 3, 3, 3)
ONES = torch.ones
#: For conv3d; conv2d's are the same without the last dimension.
REFUSED = [
    (X, ONES(2, 3, 3, 3, 3)), (X, ONES(2, 2, 3, 3)), (ONES(4, 4), W), (X, W, ONES(3)), (X, W, ONES(1)), (X, W, ONES(2, 1)),
    (X, W, None, 1, 0, 1, 3), (X, W, None, 1, 0, 1, 0), (X, W, None, 0), (X, W, None, -1), (X, W, None, 1, -1), (X, W, None, 1, 0, 0),
    (X, ONES(1, 2, 9, 1, 1)), (X, ONES(1, 2, 1, 9, 1)), (X.double(), W), (X.half(), W), (X, W, ONES(2).double()), (X.int(), W),
    (X.bool(), W.bool()), (X, W, None, (1, 1, 1, 1)), (X, W, None, 1, (1, 1, 1, 1)), (X, W, None, 2, "same"), (X, W, None, 1, "smae"),
    (X, ONES(2, 2, 0, 3, 3)), (ONES(1, 2, 0, 4, 4), W), (X.cfloat(), W), (X.to_sparse(), W), (X, ONES(3, 1, 3, 3, 3), None, 1, 0, 1, 2),
    (X, W, None, 1.5), (X, W, None, 1, 0, 1, True), (X, W.bfloat16()), (X.to(torch.float8_e4m3fn), W.to(torch.float8_e4m3fn)),
    (X, W, None, ()), (X, W, None, 1, 0, (1, 2)),
]
#: What it takes, all the same.
TAKEN = [
    (X, W), (X[0], W), (X, W, ONES(2)), (X, W, None, [1], [1], [1], 1), (X, W, None, (1, 2, 1), (0, 1, 2), 1), (X, W, None, 1, "same"),
    (X, W, None, 2, "valid"), (X, W[:, :1].contiguous(), None, 1, 0, 1, 2), (X.double(), W.double()), (X, ONES(2, 2, 1, 4, 4)),
    (ONES(0, 2, 4, 4, 4), W),
]
SCOPES = [dict(start="split"), dict(start="nocudnn"), dict(start="cpu"), dict(tiers="split"), dict(tiers="nocudnn"), dict(tiers="cpu")]


def flat(args):
    """For conv2d: without the last dimension."""
    return tuple(one[..., 0] if isinstance(one, torch.Tensor) and one.dim() == 5 else one[1:] if isinstance(one, tuple) else one
                 for one in args)


def outcome(function, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return type(error), str(error)


class Refused(WithWrapper):
    def test_in_a_scope(self):
        for args in REFUSED:
            for op in ("conv3d", "conv2d"):
                if op == "conv2d" and args[0].is_sparse:
                    continue
                given = args if op == "conv3d" else flat(args)
                want = outcome(getattr(torch, op), given)
                for how in SCOPES:
                    with fpt_agent.conv_fallback(**how):
                        got = outcome(getattr(F, op), given)
                    if isinstance(want, tuple):
                        self.assertEqual(got, want, (op, how, given))
                    else:  # flattened, some are none of those that are refused
                        self.assertTrue(same(got, want), (op, how, given))

    def test_by_the_supervisors_tier(self):
        for start in (1, 2, 3):
            self.put(start=start, start2=2)
            for args in REFUSED:
                want = outcome(torch.conv3d, args)
                self.assertIsInstance(want, tuple)
                self.assertEqual(outcome(F.conv3d, args), want, (start, args))

    def test_what_is_taken_begins_where_it_is_to(self):
        for args in TAKEN:
            want = outcome(torch.conv3d, args)
            for start, name in ((1, "split"), (2, "nocudnn"), (3, "cpu")):
                self.put(start=start)
                got = outcome(F.conv3d, args)
                self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
                if want.numel():
                    self.assertTrue(same(got, want), (start, args))
                    self.assertEqual(counts(), {"conv3d.%s.tried" % name: 1, "conv3d.%s.ok" % name: 1}, args)

    def test_types_that_autocast_makes_one(self):
        for x, w in ((X, W.bfloat16()), (X.bfloat16(), W), (X, W)):
            for start in (1, 2, 3):
                self.put(start=start)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    self.assertEqual(F.conv3d(x, w).dtype, torch.bfloat16)
                    refused = outcome(F.conv3d, (x.double(), w))
                    self.assertEqual(refused, outcome(torch.conv3d, (x.double(), w)))
                self.assertEqual(sum(counts().values()), 2)


if __name__ == "__main__":
    unittest.main()
