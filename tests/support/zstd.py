"""Frames of zstd by the library itself: what tests compress and decompress with."""

import ctypes

_zstd = ctypes.CDLL("libzstd.so.1")
for _name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress", "ZSTD_findFrameCompressedSize"):
    getattr(_zstd, _name).restype = ctypes.c_size_t
_zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
_zstd.ZSTD_isError.restype = ctypes.c_uint


def _checked(size):
    if _zstd.ZSTD_isError(ctypes.c_size_t(size)):
        raise ValueError("libzstd refuses it")
    return size


def pack(raw, level=3):
    """One frame."""
    room = _zstd.ZSTD_compressBound(ctypes.c_size_t(len(raw)))
    out = ctypes.create_string_buffer(room)
    size = _checked(_zstd.ZSTD_compress(out, ctypes.c_size_t(room), raw, ctypes.c_size_t(len(raw)), level))
    return out.raw[:size]


def unpack(frame):
    """What the one frame holds, which says how much that is."""
    room = _zstd.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
    if room > 1 << 32:
        raise ValueError("the frame does not say how much it holds")
    if _checked(_zstd.ZSTD_findFrameCompressedSize(frame, ctypes.c_size_t(len(frame)))) != len(frame):
        raise ValueError("there is more than one frame")
    out = ctypes.create_string_buffer(room + 1)
    size = _checked(_zstd.ZSTD_decompress(out, ctypes.c_size_t(room), frame, ctypes.c_size_t(len(frame))))
    return out.raw[:size]


def run_frame(blocks, window_log=17):
    """A frame of so many times 128 KB of zeros, in four bytes each, that asks for a window and does not say
    how much it holds."""
    block = (1 << 17) << 3 | 1 << 1  # a run of one byte
    return (bytes((0x28, 0xb5, 0x2f, 0xfd, 0x00, (window_log - 10) << 3)) +
            (block.to_bytes(3, "little") + b"\0") * (blocks - 1) + (block | 1).to_bytes(3, "little") + b"\0")
