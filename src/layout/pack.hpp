// Small files of one node and step share one protected file, a pack: its manifest lists them, and each is a version all the same. docs/decisions/0064
#pragma once
#include "layout/manifest.hpp"

namespace holdfast::layout {

// One of its files, as the manifest of a version of its own would describe it. Its id follows from the pack's and ends as that does.
Manifest file_in(const std::shared_ptr<const Manifest>& pack, size_t index);
// The manifest that there is on the members: the pack's, or this one.
inline const Manifest& stored(const Manifest& manifest) { return manifest.within ? *manifest.within : manifest; }
// How many versions that one is: the files of a pack.
inline size_t versions_in(const Manifest& stored) { return stored.pack.empty() ? 1 : stored.pack.size(); }
// The pack's manifest gets these files, which are of one checkpoint.
void fill(Manifest& manifest, std::vector<Packed> files);

}  // namespace holdfast::layout
