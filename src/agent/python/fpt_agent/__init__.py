"""The agent of framepack-tui inside the user's Python.

It is put there by the supervisor (docs/agent.md), needs nothing but the standard library, never
imports torch itself and changes nothing on disk that is the user's. Whatever fails in here costs
telemetry, never the run: every hook is fenced, and an agent without a supervisor is silent.

Users' own code may import it for the convolution fallback, with or without the supervisor:

    import fpt_agent

    with fpt_agent.conv_fallback(start="split"):
        frames = vae.decode(latents)

    @fpt_agent.conv_fallback(tiers=("native", "split", "cpu"))
    def decode(latents): ...

Inside, a conv3d or conv2d that the library (MIOpen, cudnn) or the memory fails is made again by the next tier:
`native`, `split` (conv3d as a sum of conv2d's), `nocudnn` (library off for the call, in parts), `cpu` (float32 on
the CPU). It holds for the thread that enters, may be nested, and ends with the block, whatever its end.
"""

#: Version of the messages on the socket; docs/agent.md.
PROTOCOL = 1
#: Version of the package; that of the program that carries it.
VERSION = "0.1.0"

_started = False


def start():
    """Reads the configuration, watches for modules to hook and says hello. A second call does nothing."""
    global _started
    if _started:
        return
    _started = True
    from . import agent

    agent.start()


def __getattr__(name):
    # PEP 562: users' imports cost the program nothing that it does not use
    if name == "conv_fallback":
        from . import scope

        return scope.conv_fallback
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
