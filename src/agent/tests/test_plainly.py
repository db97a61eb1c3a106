"""What is traced, transformed or looked at by a mode of the program's is the same as without the agent."""
import sys
import textwrap
import unittest
import unittest.mock

from support_vault import PACKAGE, Supervisor

sys.path.insert(0, PACKAGE)

CODE = """
    import os, sys, warnings
    import torch
    from diffusers import AutoencoderKL, FluxTransformer2DModel
    from fpt_agent import store, vault
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    torch.manual_seed(0)
    vae = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=4).eval().requires_grad_(False)
    flux = FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                  joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 4, 8]).eval().requires_grad_(False)
    e, p, ids, t = torch.randn(1, 4, 32), torch.randn(1, 32), torch.zeros(4, 3), torch.ones(1)
    z, x = torch.randn(1, 4, 8, 8), torch.randn(1, 4, 4)

    def model(x):
        return flux(hidden_states=x, encoder_hidden_states=e, pooled_projections=p, timestep=t, img_ids=ids, txt_ids=ids, return_dict=False)[0]

    def decode(z):
        return vae.decode(z, return_dict=False)[0]

    @vault.outermost("tiny", lambda args, kwargs: None)
    def tiny(z):
        return z * 2

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(function)
            return function(*args, **(kwargs or {}))

    class Above(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen.append(function)
            return function(*args, **(kwargs or {}))

    def watched(mode, function, given):
        mode.seen = []
        with mode:
            function(given)
        return len(mode.seen)

    def nodes(graph):
        return len(list(graph.nodes))

    def jit(function, given):
        return len(list(torch.jit.trace(function, given, check_trace=False).graph.nodes()))

    ways = {}
    for name, function, given in (("decode", decode, z), ("model", model, x)):
        ways[name + " functionalize"] = lambda f=function, g=given: torch.func.functionalize(f)(g).sum().item()
        ways[name + " jit"] = lambda f=function, g=given: jit(f, g)
        ways[name + " make_fx"] = lambda f=function, g=given: nodes(make_fx(f)(g).graph)
        ways[name + " dispatch"] = lambda f=function, g=given: watched(Below(), f, g)
        ways[name + " function"] = lambda f=function, g=given: watched(Above(), f, g)
    ways["dynamo"] = lambda: torch.compile(tiny, backend="eager", fullgraph=True)(z).sum().item()

    def all_ways():
        found = {}
        with torch.no_grad(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for name, way in ways.items():
                found[name] = way()
        return found, [str(w.message)[:200] for w in said if "fpt_agent" in str(w.message) + w.filename]

    with_agent, said = all_ways()
    torch._dynamo.reset()
    for kind, name in ((AutoencoderKL, "decode"), (FluxTransformer2DModel, "forward")):
        while "fpt_agent" in getattr(kind, name).__code__.co_filename:
            setattr(kind, name, getattr(kind, name).__wrapped__)
    without, _ = all_ways()
    print(said, {name: (with_agent[name], without[name]) for name in ways if with_agent[name] != without[name]}, len(ways))
    store.store.flush(60)
    print(sorted({name.split(".")[0] for name in os.listdir(store.store.folder)}))
"""


class Plainly(unittest.TestCase):
    def test_tracers_transforms_and_modes_see_the_program_alone(self):
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(CODE), settings={"replay_steps": "true"})
            self.assertEqual((code, out), (0, "[] {} 11\n['latents', 'step']\n"), err[-3000:])
            s.wait("bye")
            self.assertFalse(s.of("hook_failed"))

    def test_nothing_is_copied_while_a_graph_of_the_device_is_recorded(self):
        import torch
        from fpt_agent import plainly

        self.assertTrue(plainly.eager(torch.ones(1)))
        with unittest.mock.patch.object(torch.cuda, "is_initialized", lambda: True), \
                unittest.mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: True):
            self.assertFalse(plainly.eager(torch.ones(1)))
        self.assertFalse(plainly.eager([{"a": torch.ones(1, device="meta")}]))


if __name__ == "__main__":
    unittest.main()
