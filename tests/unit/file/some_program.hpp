// A program that uses one file in all ways, from a seed.
#pragma once
#include <random>
#include <string>

#include "base/file_layer.hpp"
#include "coding/checksum.hpp"

namespace holdfast::file::test {

inline Bytes some_bytes(std::mt19937_64& random, size_t most) {
  Bytes bytes(1 + random() % most);
  for (std::byte& byte : bytes) byte = std::byte(random());
  return bytes;
}

// Such as are shared out: with holes between them, and beyond the end of the file.
inline std::string use_big_pieces(FileLayer& file, std::mt19937_64& random, uint64_t big) {
  const uint64_t first = big / 2 + random() % 1000;
  const Extent extents[2] = {{random() % 300, first}, {big + random() % 5000, big - first}};
  Bytes data(big, std::byte(random()));
  for (size_t i = 0; i < data.size(); i += 97) data[i] = std::byte(i * 31);
  if (random() % 2) return file.write(extents, data).ok() ? "B" : "!";
  const auto got = file.read(extents, data);
  return "b" + std::to_string(got ? *got : 0) + "." + std::to_string(coding::plain_checksum(data, got ? *got : 0));
}

// A program's calls on its file, and what they answered. `big`: bytes of those calls that are worth being shared out; 0: there are none.
inline std::string run_program(FileLayer& file, uint64_t seed, uint64_t big) {
  std::mt19937_64 random(seed);
  std::string seen;
  for (int i = 0; i < 14; ++i) {
    const Extent extents[2] = {{random() % 100, 5}, {150 + random() % 50, 7}};
    switch (random() % 6) {
      case 0: {
        const Bytes data = some_bytes(random, 40);
        const Extent extent{random() % 200, data.size()};
        seen += file.write({&extent, 1}, data).ok() ? "w" : "!";
        break;
      }
      case 1: {
        Bytes data(12, std::byte(i));
        seen += file.write(extents, data).ok() ? "v" : "!";
        break;
      }
      case 2: {
        const Bytes data = some_bytes(random, 20);
        const ByteView piece(data);
        const auto place = file.append({&piece, 1}, false);
        seen += "a" + std::to_string(place ? place->offset : 0);
        break;
      }
      case 3: {
        Bytes into(12);
        const auto got = file.read(extents, into);
        seen += "r" + std::to_string(got ? *got : 0) + std::string(reinterpret_cast<const char*>(into.data()), into.size());
        break;
      }
      case 4: {
        const auto size = file.size();
        seen += "s" + std::to_string(size ? *size : 0) + (file.set_size(random() % 300).ok() ? "" : "!");
        break;
      }
      default: seen += file.sync().ok() ? "S" : "!";
    }
    if (big > 0 && random() % 3 == 0) seen += use_big_pieces(file, random, big);
  }
  return seen + (file.close().ok() ? "" : "!");
}

}  // namespace holdfast::file::test
