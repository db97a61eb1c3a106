"""JSON in the words of the `json` package, by the C functions below it: its own modules, with `re` and `enum`, take
longer to import than the rest of the agent, and most starts of Python are not of a program that needs them."""
try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:  # an interpreter without them has the package all the same
    make_scanner = None


def said(value, how=str):
    """The value as text. One of the program's may have words that raise: its own exception must come out, not that."""
    try:
        return how(value)
    except Exception as error:
        return "(%s, whose text raises %s)" % (type(value).__name__, type(error).__name__)


class Rules:
    """What `json.loads` asks for."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get
    memo = {}


if make_scanner is None:
    import json

    def dumps(value):
        """The value as one line of JSON; what JSON does not know as text, keys of other kinds left out. Raises
        ValueError for NaN, for an infinity and for a value inside itself."""
        return json.dumps(value, default=str, separators=(",", ":"), allow_nan=False, skipkeys=True)

    def loads(text):
        """The value that the text describes. Raises ValueError."""
        return json.loads(text)
else:
    _scan = make_scanner(Rules)

    def dumps(value):
        """The value as one line of JSON; what JSON does not know as text, keys of other kinds left out. Raises
        ValueError for NaN, for an infinity and for a value inside itself."""
        encode = make_encoder({}, str, encode_basestring_ascii, None, ":", ",", False, True, False)
        return "".join(encode(value, 0))

    def loads(text):
        """The value that the text describes. Raises ValueError."""
        text = text.strip(" \t\r\n")
        try:
            value, end = _scan(text, 0)
        except (StopIteration, SystemError, ValueError):
            end = -1  # some versions cannot even say what is wrong where the package is not there
        if end != len(text):
            import json

            return json.loads(text)  # raises
        return value
