// What the fuzzers run, one function per reader of bytes that come from outside. They assert; a crash is a finding.
#pragma once
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "fuzz/demand.hpp"
#include "layout/manifest.hpp"
#include "layout/row_record.hpp"
#include "layout/sealed_text.hpp"
#include "layout/shared_record.hpp"

namespace holdfast::fuzz {

// A manifest that is accepted is within its limits, and comes back the same when it is written and read again.
inline void manifest_text(const std::string& text) {
  auto read = layout::decode(std::as_bytes(std::span(text.data(), text.size())));
  if (!read) {
    demand(read.status().kind() == Kind::corrupt || read.status().kind() == Kind::version);
    demand(!read.status().sentence().empty());
    return;
  }
  const layout::Manifest& m = *read;
  demand(m.geometry.check().ok());
  demand(m.members.size() == size_t(m.geometry.members) && m.members.size() <= size_t(layout::max_pool_members));
  demand(m.directory.find('/') == std::string::npos && (m.directory.empty() || m.directory[0] != '.'));
  demand(m.directory.empty() == m.geometry.single_directory);
  if (m.rows > 0) {
    const layout::UnitPlace last = layout::place(m.geometry, m.rows - 1, m.geometry.scheme.width() - 1);
    demand(last.offset + m.geometry.unit_bytes <= uint64_t(INT64_MAX));
  }
  layout::Manifest cut = m;  // the one thing that is not kept whole
  for (auto& member : cut.members) member.why.resize(std::min<size_t>(member.why.size(), 512));
  const std::string written = layout::encode(m);
  auto again = layout::decode(std::as_bytes(std::span(written.data(), written.size())));
  demand(again.ok() && *again == cut);
}

// The reader behind the checksum: any text, properly sealed.
inline void sealed_manifest(const std::string& text) { manifest_text(layout::seal("manifest", layout::manifest_format, text)); }

// First three bytes choose the geometry, the rest is the slot.
inline void record_slot(ByteView bytes) {
  if (bytes.size() < 3) return;
  layout::Geometry g;
  g.scheme = {1 + int(bytes[0]) % 32, 1 + int(bytes[1]) % 8, false};
  g.members = g.scheme.width();
  g.unit_bytes = layout::min_unit_bytes * (1 + uint64_t(bytes[2]) % 16);
  g.block_bytes = layout::block_bytes_for(g.unit_bytes);
  auto read = layout::decode_record(g, 7, 3, bytes.subspan(3));
  if (!read) return demand(read.status().kind() == Kind::corrupt);
  demand(read->row == 3);
  demand(read->hole() || read->checksums.size() == size_t(g.scheme.width()) * g.blocks_per_unit());
}

// A log's entry header, and the texts that stand in logs.
inline void log_entry(ByteView bytes) {
  auto read = layout::decode_entry(7, 8, bytes);
  if (!read) return demand(read.status().kind() == Kind::corrupt || read.status().kind() == Kind::not_found || read.status().kind() == Kind::version);
  demand(read->length <= layout::max_record_bytes);
}
inline void sealed_session(const std::string& text) {
  const std::string sealed = layout::seal("session", layout::session_format, text);
  auto read = layout::decode_session(std::as_bytes(std::span(sealed)));
  if (!read) return demand(read.status().kind() == Kind::corrupt);
  demand(!read->view.runs.empty() && read->view.extent > 0 && read->rank < read->ranks);
  const std::string written = layout::encode(*read);
  auto again = layout::decode_session(std::as_bytes(std::span(written)));
  demand(again.ok() && *again == *read);
}

}  // namespace holdfast::fuzz
