"""Files with weights, and the bar that the page shows."""


def load_torch_file(ckpt, safe_load=False, device=None, return_metadata=False):
    """Weights are made, not read."""
    return ({"weight": ckpt}, None) if return_metadata else {"weight": ckpt}


class ProgressBar:
    def __init__(self, total, node_id=None):
        self.total, self.current = total, 0

    def update_absolute(self, value, total=None, preview=None):
        if total is not None:
            self.total = total
        self.current = min(value, self.total)

    def update(self, value):
        self.update_absolute(self.current + value)
