"""Reads and writes the safetensors format with the standard library alone.

A file is 8 bytes (length of the header, little-endian), a JSON header (`name` -> `dtype`, `shape`, `data_offsets`
from the end of the header; `__metadata__`: text -> text), and the tensors' bytes one behind the other.
"""
import ctypes
import hashlib
import json
import os

#: Name in the file -> attribute of torch.
DTYPES = {
    "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64", "I8": "int8", "U8": "uint8",
    "I16": "int16", "I32": "int32", "I64": "int64", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "C64": "complex64", "U16": "uint16", "U32": "uint32", "U64": "uint64",
}
NAMES = {"torch." + attribute: name for name, attribute in DTYPES.items()}
#: A header longer than this is none of ours.
LONGEST_HEADER = 100 << 20


def name_of(dtype):
    """The format's name of a torch dtype. ValueError: it has none."""
    name = NAMES.get(str(dtype))
    if name is None:
        raise ValueError("safetensors cannot hold %s" % dtype)
    return name


def data_of(tensor):
    """The bytes of a contiguous CPU tensor as a memoryview, not copied; the view keeps the tensor alive."""
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return memoryview(b"")
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise ValueError("a contiguous tensor on the CPU is needed")
    address = tensor.data_ptr()
    if not address:  # to read from there ends the process
        raise ValueError("a tensor without data")
    memory = (ctypes.c_ubyte * size).from_address(address)
    memory.owner = tensor
    return memoryview(memory).cast("B")


def seal_of(head):
    """Digest of the header without its `seal`: SHA-256 of it as JSON in ASCII, keys in order, no blanks."""
    told = {k: v for k, v in head["__metadata__"].items() if k != "seal"}
    text = json.dumps(dict(head, __metadata__=told), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def header_of(tensors, metadata):
    """The file's bytes before the data. `tensors`: name -> (dtype name, shape, bytes), in the order of the data. Where
    the metadata hold the digest of the data, `seal` is added, by which the digest vouches for the header too."""
    head, at = {"__metadata__": {str(k): str(v) for k, v in metadata.items()}}, 0
    for name, (dtype, shape, size) in tensors.items():
        head[name] = {"dtype": dtype, "shape": [int(n) for n in shape], "data_offsets": [at, at + size]}
        at += size
    if "sha256" in metadata:
        head["__metadata__"]["seal"] = seal_of(head)
    text = json.dumps(head, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read_header(file):
    """(name -> entry, metadata, offset of the data) of an open binary file, checked against the file's length.

    ValueError: it is not a whole safetensors file."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(LONGEST_HEADER, size - 8):
        raise ValueError("not a safetensors file")
    head = json.loads(file.read(length).decode("utf-8"))
    if not isinstance(head, dict):
        raise ValueError("not a safetensors file")
    metadata = head.pop("__metadata__", None) or {}
    at = 0
    for name, entry in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if begin != at or end < begin or entry["dtype"] not in DTYPES:
            raise ValueError("tensor %s is not in order" % name)
        at = end
    if size != 8 + length + at:
        raise ValueError("the file is cut short")
    return head, metadata, 8 + length


def read(path, torch, sealed=False):
    """(name -> CPU tensor, metadata) of a file. `torch` is the program's module. `sealed`: only where `sha256` of the
    metadata is the digest of all data behind the header, and `seal` that of the header (older entries have none).
    ValueError, OSError: as it says."""
    with open(path, "rb") as file:
        head, metadata, start = read_header(file)
        if sealed and "seal" in metadata and metadata["seal"] != seal_of(dict(head, __metadata__=metadata)):
            raise ValueError("its header is not what was written")
        tensors, digest = {}, hashlib.sha256()
        for name, entry in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            data = bytearray(end - begin)
            if file.readinto(data) != end - begin:
                raise ValueError("the file is cut short")
            if sealed:
                digest.update(data)
            dtype = getattr(torch, DTYPES[entry["dtype"]])
            shape = entry["shape"]
            if not data:
                tensors[name] = torch.empty(shape, dtype=dtype)
            else:
                tensors[name] = torch.frombuffer(data, dtype=dtype).reshape(shape)
    if sealed and metadata.get("sha256") != digest.hexdigest():
        raise ValueError("its data are not what was written")
    return tensors, metadata
