#include "frontend/external32.hpp"

#include <cfloat>
#include <cstring>
#include <limits>

namespace holdfast::frontend {

namespace {

// IEEE binary128 is external32's long double; __float128 is it in memory, and converts from x87's 80 bits exactly.
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Quad;
#else
typedef long double Quad;  // an architecture whose long double is binary128 already
#endif
static_assert(sizeof(Quad) == 16 && sizeof(long double) <= 16);

template <class Word>
Word swapped(Word word) {
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  return __builtin_bswap64(word);
}

template <class Word>
void swap_all(const std::byte* from, std::byte* to, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i, from += sizeof(Word), to += sizeof(Word)) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    word = swapped(word);
    std::memcpy(to, &word, sizeof word);
  }
}

void reverse16(const std::byte* from, std::byte* to) {
  for (int i = 0; i < 16; ++i) to[i] = from[15 - i];
}

Status too_large(const char* type) {
  return Status(Kind::invalid,
                std::string("a value of ") + type + " does not fit its size in external32; write it as a type that external32 holds whole");
}

template <class Wide, class Narrow>
Status narrow(const std::byte* from, std::byte* to, uint64_t elements, const char* type) {
  for (uint64_t i = 0; i < elements; ++i, from += sizeof(Wide), to += sizeof(Narrow)) {
    Wide wide;
    std::memcpy(&wide, from, sizeof wide);
    if (wide < std::numeric_limits<Narrow>::min() || wide > std::numeric_limits<Narrow>::max()) return too_large(type);
    std::make_unsigned_t<Narrow> word = swapped(static_cast<std::make_unsigned_t<Narrow>>(wide));
    std::memcpy(to, &word, sizeof word);
  }
  return Status();
}

template <class Wide, class Narrow>
void widen(const std::byte* from, std::byte* to, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i, from += sizeof(Narrow), to += sizeof(Wide)) {
    std::make_unsigned_t<Narrow> word;
    std::memcpy(&word, from, sizeof word);
    const Wide wide = static_cast<Narrow>(swapped(word));
    std::memcpy(to, &wide, sizeof wide);
  }
}

Status encode(Basic basic, const std::byte* from, std::byte* to, uint64_t elements) {
  switch (basic) {
    case Basic::raw: std::memcpy(to, from, elements); break;
    case Basic::swap2: swap_all<uint16_t>(from, to, elements); break;
    case Basic::swap4: swap_all<uint32_t>(from, to, elements); break;
    case Basic::swap8: swap_all<uint64_t>(from, to, elements); break;
    case Basic::swap16:
      for (uint64_t i = 0; i < elements; ++i) reverse16(from + 16 * i, to + 16 * i);
      break;
    case Basic::int_8_to_4: return narrow<int64_t, int32_t>(from, to, elements, "MPI_LONG");
    case Basic::uint_8_to_4: return narrow<uint64_t, uint32_t>(from, to, elements, "MPI_UNSIGNED_LONG");
    case Basic::wchar_4_to_2: return narrow<uint32_t, uint16_t>(from, to, elements, "MPI_WCHAR");
    case Basic::long_double:
      for (uint64_t i = 0; i < elements; ++i) {
        long double value;
        std::memcpy(&value, from + i * sizeof value, sizeof value);
        const Quad quad = value;
        std::byte bytes[16];
        std::memcpy(bytes, &quad, 16);
        reverse16(bytes, to + 16 * i);
      }
      break;
  }
  return Status();
}

void decode(Basic basic, const std::byte* from, std::byte* to, uint64_t elements) {
  switch (basic) {
    case Basic::int_8_to_4: return widen<int64_t, int32_t>(from, to, elements);
    case Basic::uint_8_to_4: return widen<uint64_t, uint32_t>(from, to, elements);
    case Basic::wchar_4_to_2: return widen<uint32_t, uint16_t>(from, to, elements);
    case Basic::long_double:
      for (uint64_t i = 0; i < elements; ++i) {
        std::byte bytes[16];
        reverse16(from + 16 * i, bytes);
        Quad quad;
        std::memcpy(&quad, bytes, 16);
        const long double value = static_cast<long double>(quad);
        std::memset(to + i * sizeof value, 0, sizeof value);
        std::memcpy(to + i * sizeof value, &value, LDBL_MANT_DIG == 64 ? 10 : sizeof value);  // x87 pads its 80 bits
      }
      return;
    default: (void)encode(basic, from, to, elements);  // a swap undoes itself
  }
}

// Calls element_run(basic, elements) along the tiling until `bytes` of it, counted by `bytes_of`, are used up.
template <class BytesOf, class ElementRun>
void along(const Typemap& type, uint64_t bytes, BytesOf bytes_of, ElementRun element_run) {
  if (type.size() == 0) return;
  while (true) {
    for (const Run& run : type.runs()) {
      const uint64_t elements = std::min(run.bytes() / native_bytes(run.basic), bytes / bytes_of(run.basic));
      if (elements == 0 || !element_run(run.basic, elements)) return;
      bytes -= elements * bytes_of(run.basic);
      if (elements < run.bytes() / native_bytes(run.basic)) return;
    }
  }
}

}  // namespace

uint64_t native_bytes(Basic basic) {
  switch (basic) {
    case Basic::raw: return 1;
    case Basic::swap2: return 2;
    case Basic::swap4:
    case Basic::wchar_4_to_2: return 4;
    case Basic::swap8:
    case Basic::int_8_to_4:
    case Basic::uint_8_to_4: return 8;
    case Basic::swap16: return 16;
    case Basic::long_double: return sizeof(long double);
  }
  return 1;
}

uint64_t external_bytes(Basic basic) {
  switch (basic) {
    case Basic::int_8_to_4:
    case Basic::uint_8_to_4: return 4;
    case Basic::wchar_4_to_2: return 2;
    case Basic::long_double: return 16;
    default: return native_bytes(basic);
  }
}

uint64_t external_size(const Typemap& type, uint64_t native) {
  if (type.size() == 0) return 0;
  uint64_t tile = 0, rest = 0;
  for (const Run& run : type.runs()) tile += run.bytes() / native_bytes(run.basic) * external_bytes(run.basic);
  along(type, native % type.size(), native_bytes, [&](Basic basic, uint64_t elements) {
    rest += elements * external_bytes(basic);
    return true;
  });
  return native / type.size() * tile + rest;
}

uint64_t native_size(const Typemap& type, uint64_t external) {
  if (type.size() == 0) return 0;
  const uint64_t tile = external_size(type, type.size());
  uint64_t rest = 0;
  along(type, external % tile, external_bytes, [&](Basic basic, uint64_t elements) {
    rest += elements * native_bytes(basic);
    return true;
  });
  return external / tile * type.size() + rest;
}

Status to_external(const Typemap& type, ByteView packed, ByteSpan external) {
  const std::byte* from = packed.data();
  std::byte* to = external.data();
  Status status;
  along(type, packed.size(), native_bytes, [&](Basic basic, uint64_t elements) {
    status = encode(basic, from, to, elements);
    from += elements * native_bytes(basic);
    to += elements * external_bytes(basic);
    return status.ok();
  });
  return status;
}

Status from_external(const Typemap& type, ByteView external, ByteSpan packed) {
  const std::byte* from = external.data();
  std::byte* to = packed.data();
  along(type, external.size(), external_bytes, [&](Basic basic, uint64_t elements) {
    decode(basic, from, to, elements);
    from += elements * external_bytes(basic);
    to += elements * native_bytes(basic);
    return true;
  });
  return Status();
}

}  // namespace holdfast::frontend
