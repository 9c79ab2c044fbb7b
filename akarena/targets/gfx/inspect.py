"""Reads what each kernel uses (registers, LDS, spills, scratch) from an AMDGPU code object.

The compiler leaves these facts as one ELF note, a MessagePack map. The reader below needs no tool and no dependency,
checks every length, and refuses what it does not understand: the bytes come from a hostile source, which with inline
assembly can also state facts that are not true.
"""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import Any

from .bounds import printable
from .kernels import KernelResources

MAX_CODE_OBJECT_BYTES = 256 * 1024 * 1024
MAX_KERNELS = 256
_MAX_NAME = 400
_SHT_NOTE = 7
_EM_AMDGPU = 224
_NT_AMDGPU_METADATA = 32
_SECTION_HEADER_BYTES = 64
_MAX_NOTE_BYTES = 16 * 1024 * 1024
_MAX_DEPTH = 8
_MAX_ITEMS = 200_000


class InvalidCodeObjectError(Exception):
    """The bytes are not a code object that this reader understands; the message is one line."""


def read_kernels(code_object: bytes, architecture: str) -> list[KernelResources]:
    """Read the record of every kernel in ``code_object``, in the order of the note.

    Raises:
        InvalidCodeObjectError: When it is not one well-formed 64-bit AMDGPU ELF file with exactly one metadata note, or
            was built for another architecture than ``architecture``.
    """
    try:
        found = [_Unpacker(note).read() for note in _metadata_notes(code_object)]
    except (struct.error, OverflowError, UnicodeDecodeError, TypeError) as error:
        raise InvalidCodeObjectError(f"the code object is damaged: {error}") from error
    if len(found) != 1:
        raise InvalidCodeObjectError(f"the code object has {len(found)} AMDGPU metadata notes, expected 1")
    metadata = found[0]
    target = metadata.get("amdhsa.target") if isinstance(metadata, dict) else None
    kernels = metadata.get("amdhsa.kernels", []) if isinstance(metadata, dict) else None
    if not isinstance(target, str) or not isinstance(kernels, list) or len(kernels) > MAX_KERNELS:
        raise InvalidCodeObjectError("the AMDGPU metadata has no target or an unusable list of kernels")
    # "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-": features are not part of the architecture.
    built_for = target.split(":", 1)[0].rsplit("-", 1)[-1]
    if built_for != architecture:
        raise InvalidCodeObjectError(f"it was built for {built_for[:40]!r}, expected {architecture}")
    return [_resources(kernel, architecture) for kernel in kernels]


def _resources(kernel: Any, architecture: str) -> KernelResources:
    if not isinstance(kernel, dict) or not isinstance(kernel.get(".name"), str):
        raise InvalidCodeObjectError("a kernel in the AMDGPU metadata has no name")

    def count(key: str, default: int | None = None) -> int:
        value = kernel.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32:
            raise InvalidCodeObjectError(f"kernel metadata {key} is {str(value)[:40]}, expected a count")
        return value

    return KernelResources(
        name=printable(kernel[".name"][:_MAX_NAME]),
        architecture=architecture,
        vgpr_count=count(".vgpr_count"),
        agpr_count=count(".agpr_count", 0),
        sgpr_count=count(".sgpr_count"),
        vgpr_spill_count=count(".vgpr_spill_count", 0),
        sgpr_spill_count=count(".sgpr_spill_count", 0),
        lds_bytes=count(".group_segment_fixed_size"),
        scratch_bytes=count(".private_segment_fixed_size"),
        max_flat_workgroup_size=count(".max_flat_workgroup_size"),
    )


def _metadata_notes(data: bytes) -> list[bytes]:
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _EM_AMDGPU:
        raise InvalidCodeObjectError("not a 64-bit little-endian AMDGPU ELF file")
    table = struct.unpack_from("<Q", data, 40)[0]
    entry_size, entries = struct.unpack_from("<HH", data, 58)
    if entry_size != _SECTION_HEADER_BYTES:
        raise InvalidCodeObjectError(f"section headers have {entry_size} bytes, expected {_SECTION_HEADER_BYTES}")
    notes = []
    room = _MAX_NOTE_BYTES
    for index in range(entries):
        header = table + index * entry_size
        kind = struct.unpack_from("<I", data, header + 4)[0]
        offset, size = struct.unpack_from("<QQ", data, header + 24)
        if kind != _SHT_NOTE:
            continue
        # Sections may overlap, so the file's size does not bound the work.
        room -= size
        if offset + size > len(data) or room < 0:
            raise InvalidCodeObjectError("a note section lies outside the file or is too long")
        notes += _notes_of_section(data[offset : offset + size])
    return notes


def _notes_of_section(section: bytes) -> list[bytes]:
    notes = []
    position = 0
    while position < len(section):
        name_size, size, kind = struct.unpack_from("<III", section, position)
        name_at = position + 12
        start = name_at + (name_size + 3) // 4 * 4
        if start + size > len(section):
            raise InvalidCodeObjectError("a note is longer than its section")
        if kind == _NT_AMDGPU_METADATA and section[name_at : name_at + name_size] == b"AMDGPU\0":
            notes.append(section[start : start + size])
        position = start + (size + 3) // 4 * 4
    return notes


class _Unpacker:
    """Reads one MessagePack value; only the kinds that LLVM writes."""

    _LENGTHS = MappingProxyType({0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"})
    _NUMBERS = MappingProxyType(
        {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q", 0xCA: "f", 0xCB: "d"}
    )

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._items = 0

    def read(self, depth: int = 0) -> Any:
        self._items += 1
        if depth > _MAX_DEPTH or self._items > _MAX_ITEMS:
            raise InvalidCodeObjectError("the AMDGPU metadata is nested too deeply or too long")
        code = self._take("B")
        if code <= 0x7F:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if code in self._NUMBERS:
            return self._take(self._NUMBERS[code])
        if 0xA0 <= code <= 0xBF or code in (0xD9, 0xDA, 0xDB):
            return self._text(code & 0x1F if code <= 0xBF else self._take(self._LENGTHS[code]))
        if 0x90 <= code <= 0x9F or code in (0xDC, 0xDD):
            length = code & 0x0F if code <= 0x9F else self._take(self._LENGTHS[code])
            return [self.read(depth + 1) for _ in range(length)]
        if 0x80 <= code <= 0x8F or code in (0xDE, 0xDF):
            length = code & 0x0F if code <= 0x8F else self._take(self._LENGTHS[code])
            return {self.read(depth + 1): self.read(depth + 1) for _ in range(length)}
        raise InvalidCodeObjectError(f"the AMDGPU metadata holds an unknown kind of value (0x{code:02x})")

    def _take(self, form: str) -> Any:
        value = struct.unpack_from(f">{form}", self._data, self._position)[0]
        self._position += struct.calcsize(f">{form}")
        return value

    def _text(self, length: int) -> str:
        start = self._position
        if start + length > len(self._data):
            raise InvalidCodeObjectError("a text in the AMDGPU metadata is longer than its note")
        self._position += length
        return self._data[start : start + length].decode("utf-8")
