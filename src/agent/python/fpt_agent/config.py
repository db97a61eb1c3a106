"""What the supervisor wants, and what the user's environment says beside it.

`FPT_AGENT_CONFIG` holds one JSON object (docs/agent.md, *Configuration*). `FPT_CONV_TIER` and the
like, set by the user, win over the profile's; a rung that must win is no longer in the
environment of the user by then: the supervisor has replaced it.
"""
import os

from . import wire

TIERS = ("native", "split", "nocudnn", "cpu")
#: Units of a size as the supervisor reads them: without `B` and with `iB` powers of 1024, else of 1000.
UNITS = {"": 1, "B": 1, "kB": 10 ** 3}
for _power, _letter in enumerate("KMGT", 1):
    UNITS[_letter] = UNITS[_letter + "iB"] = 1 << 10 * _power
    UNITS[_letter + "B"] = 1000 ** _power


class Config:
    """The configuration of this process. Settings are text by name, as in a profile."""

    def __init__(self, environ=None):
        environ = os.environ if environ is None else environ
        self.problems = []
        text = environ.get("FPT_AGENT_CONFIG") or "{}"
        try:
            told = wire.loads(text)
            if not isinstance(told, dict):
                raise ValueError("not an object")
        except ValueError as error:
            self.problems.append("FPT_AGENT_CONFIG: %s" % error)
            told = {}
        self.socket = environ.get("FPT_AGENT_SOCKET")
        self.stacks_file = told.get("stacks_file")
        self.vault = told.get("vault")
        self.conv_memory = told.get("conv_memory")
        self.run = told.get("run")
        self.attempt = told.get("attempt")
        self.resume = bool(told.get("resume"))
        #: How many times faster the run's clock goes: 1 but in the supervisor's own tests.
        self.time_scale = told.get("time_scale") if told.get("time_scale") in (2, 3, 4) else 1
        settings = told.get("settings")
        self.settings = {str(k): str(v) for k, v in settings.items()} if isinstance(settings, dict) else {}
        for name, variable in (("conv_tier", "FPT_CONV_TIER"), ("conv", "FPT_CONV")):
            if environ.get(variable):
                self.settings[name] = environ[variable]
        if "vae_piece_limit" in self.settings:
            self.problems.append("vae_piece_limit = %s: only the embedded engine has such a limit; nothing is limited here"
                                 % self.settings["vae_piece_limit"])

    def text(self, name):
        """The setting, or None."""
        return self.settings.get(name)

    def word(self, name, words):
        """The setting as one of `words`; None where it is not set or another (then told as a problem)."""
        value = self.settings.get(name)
        if value is None or value in words:
            return value
        self.problems.append("%s = %s: write one of %s" % (name, value, ", ".join(words)))
        return None

    def flag(self, name):
        """The setting as true or false; None where it is not set or neither."""
        value = self.word(name, ("true", "false", "on", "off", "1", "0", "yes", "no"))
        return None if value is None else value in ("true", "on", "1", "yes")

    def whole(self, name, least=1):
        """The setting as a whole number from `least` on; None where it is not set or none."""
        value = self.settings.get(name)
        if value is None:
            return None
        # more digits mean nothing here, and far more are an error of their own in Python
        if value.isascii() and value.isdigit() and len(value) <= 18 and int(value) >= least:
            return int(value)
        self.problems.append("%s = %s: write a whole number from %d" % (name, value, least))
        return None

    def size(self, name):
        """The setting as bytes (`20 GiB`, `512 MiB`, a bare number of bytes), a leading `+` left out."""
        value = self.settings.get(name)
        if value is None:
            return None
        number = value.strip()
        number = (number[1:] if number.startswith("+") else number).strip()
        head = number.rstrip("".join(UNITS))
        factor = UNITS.get(number[len(head):].strip())
        try:
            amount = float(head) if head[:1] in tuple("0123456789.") else -1.0
        except ValueError:
            amount = -1.0
        if factor is not None and 0 <= amount < float("inf"):
            return int(amount * factor)
        self.problems.append("%s = %s: write a size such as `6 GiB`" % (name, value))
        return None


config = Config()
