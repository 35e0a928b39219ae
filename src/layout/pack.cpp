#include "layout/pack.hpp"

#include <cassert>

#include <fmt/format.h>

namespace holdfast::layout {

namespace {

constexpr size_t kept_digits = 8;  // at an id's end: they say which node has written it (catalog/versions.hpp)

std::string id_in(const std::string& pack, size_t index) {
  const auto digits = [&](const char* which) { return file_key(fmt::format("{}.{}.{}", pack, index, which)); };
  return fmt::format("{:016x}{:08x}", digits("first"), digits("second") & 0xffffffff) + pack.substr(pack.size() - std::min(pack.size(), kept_digits));
}

}  // namespace

Manifest file_in(const std::shared_ptr<const Manifest>& pack, size_t index) {
  assert(index < pack->pack.size());
  const Packed& file = pack->pack[index];
  Manifest manifest;
  manifest.file_id = id_in(pack->file_id, index);
  manifest.set_id = pack->set_id;
  manifest.path = file.version.file;
  manifest.directory = pack->directory;
  manifest.geometry = pack->geometry;
  manifest.epoch = pack->epoch, manifest.settled_epoch = pack->settled_epoch;
  manifest.size = file.bytes;
  manifest.members = pack->members;
  manifest.mode = file.mode;
  manifest.pool = pack->pool;
  manifest.job = pack->job;
  manifest.version = file.version;
  manifest.within = pack;
  manifest.offset_within = file.offset;
  return manifest;
}

void fill(Manifest& manifest, std::vector<Packed> files) {
  assert(!files.empty());
  manifest.version = files.front().version;
  manifest.version->roll.reset();
  manifest.pack = std::move(files);
}

}  // namespace holdfast::layout
