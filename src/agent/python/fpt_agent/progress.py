"""Progress bars: tqdm in every program gives n and total at the rate at which it draws."""
from . import counted, stacks
from .hooks import fenced, on, wrap
from .state import link, state

#: Called with (bar, n, total, desc, unit, last) for each drawing of a bar of tqdm's.
watchers = []


@on("tqdm.std")
def tqdm(module):
    """Tells each drawing of a bar, and looks at each update whether the user wants an end."""

    def shown(display):
        def wrapper(self, *args, **kwargs):
            tell(self)
            return display(self, *args, **kwargs)

        return wrapper

    def updated(update):
        def wrapper(self, *args, **kwargs):
            result = update(self, *args, **kwargs)
            stacks.step()
            return result

        return wrapper

    wrap(module.tqdm, "display", shown)
    wrap(module.tqdm, "update", updated)


def tell(bar):
    """One message for a bar that moved."""
    try:
        # `disable` is set where it closes, before it is drawn for the last time
        last = bar.n == bar.total or bool(bar.disable)
        desc, unit = str(bar.desc or ""), str(bar.unit)
        moved(bar.n, bar.total, desc, unit, id(bar), last)
    except Exception:
        return
    fenced("tqdm.display", counted.drawn, bar, number(bar.n), number(bar.total), unit, last)
    for watch in watchers:
        fenced("tqdm.display", watch, bar, number(bar.n), number(bar.total), desc, unit, last)


def moved(n, total, desc="", unit="it", bar=None, last=False):
    """The same for a bar that is not tqdm's; one that says what another has just said says nothing. `bar`: which one;
    `last`: it ends here."""
    now = {"n": number(n), "total": number(total), "desc": desc[:200], "unit": unit[:20]}
    if now != state.progress:
        state.progress = now
        link.show(bar, last, **now)


def number(value):
    """JSON knows no numpy numbers."""
    return None if value is None else float(value)
