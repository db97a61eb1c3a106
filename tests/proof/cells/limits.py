"""How long a phase may be silent before a hang must be declared, in seconds.

These are the supervisor's limits (src/detect/thresholds.rs, profiles/cpu-only.toml). A declaration counts as timely
within twice the limit of its phase. `FPT_TIME_SCALE` divides every limit; the workloads are shortened by the same factor.
"""
import os

WITH_CARD = {"startup": 120, "unknown": 120, "download": 60, "model_load": 60, "mesh_post": 120}
WITH_CARD_DEFAULT = 45
WITHOUT_CARD = {**WITH_CARD, "sampling": 600, "vae_encode": 600, "vae_decode": 600}
SPIN_WITH_CARD = 120
#: The console alone samples, confirms and reads the probe: a few seconds that do not scale.
SLACK_S = 5


def time_scale():
    """The factor by which the supervisor divides its limits: 1 to 4."""
    scale = float(os.environ.get("FPT_TIME_SCALE", "1"))
    if not 1 <= scale <= 4:
        raise SystemExit("FPT_TIME_SCALE must be a number from 1 to 4")
    return scale


def silence_limit(phase, has_card):
    table = WITH_CARD if has_card else WITHOUT_CARD
    return table.get(phase, WITH_CARD_DEFAULT)


def declared_within(phases, has_card, spins=False):
    """Twice the longest limit among the accepted phases, scaled."""
    longest = max(silence_limit(phase, has_card) for phase in phases)
    if spins:
        longest = max(longest, SPIN_WITH_CARD)
    return 2 * longest / time_scale() + SLACK_S
