// What the golden files hold. A format's files are written once, checked in, and read for ever: see README.md.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/located.hpp"
#include "catalog/marker.hpp"
#include "layout/manifest.hpp"
#include "layout/pack.hpp"
#include "layout/row_record.hpp"
#include "target/directory.hpp"

namespace holdfast::golden {

namespace fs = std::filesystem;

inline fs::path folder(int format) { return fs::path(HOLDFAST_SOURCE_DIR) / "tests/golden" / ("format-" + std::to_string(format)); }

// Format 1, every field with a value of its own.
inline layout::Manifest manifest_1() {
  layout::Manifest m;
  m.file_id = "00112233445566778899aabbccddeeff";
  m.set_id = "ffeeddccbbaa99887766554433221100";
  m.path = "/home/user/run 7/caf\xe9.dat";  // Latin-1: a name that is not UTF-8
  m.directory = "caf\xe9.dat-0a1b2c3d";
  m.geometry = {{4, 2, false}, layout::Placement::interleaved, false, 7, 3, 65536, 32768};
  m.epoch = 9;
  m.settled_epoch = 8;
  m.size = 1234567;
  m.rows = 5;
  m.next_generation = 8;
  m.open_generations = {5, 7};
  m.journals = {"4.0", "7.12"};
  for (int i = 0; i < 7; ++i)
    m.members.push_back({std::string(31, 'a') + char('0' + i), "/mnt/t" + std::to_string(i), i == 2, i == 2 ? "EIO at write" : ""});
  m.path_state = {66305, 4711, 180, -5};
  m.mode = 0640;
  return m;
}

// Format 2 has two fields more.
inline layout::Manifest manifest_2() {
  layout::Manifest m = manifest_1();
  m.lone = 5;
  m.cut_to = 1200000;
  return m;
}

// Format 3: files on pools alone.
inline layout::Manifest manifest_3() {
  layout::Manifest m = manifest_2();
  m.pool = true;
  for (size_t i = 0; i < m.members.size(); ++i) m.members[i].path = "n" + std::to_string(i) + ":/nvme/me";
  return m;
}

// Format 5: files of more members than a set can have.
inline layout::Manifest manifest_5() {
  layout::Manifest m = manifest_3();
  m.geometry.members = 70;
  for (int i = 7; i < 70; ++i)
    m.members.push_back(
        {std::string(30, 'b') + std::to_string(i + 10), "n" + std::to_string(i) + ":/nvme/me", i == 69, i == 69 ? "EIO at write" : ""});
  return m;
}

// Format 6: a pack. Of three files one is empty, and one a roll.
inline layout::Manifest manifest_6() {
  layout::Manifest m = manifest_3();
  m.path.clear(), m.open_generations.clear(), m.journals.clear();
  m.lone = 0, m.cut_to.reset(), m.path_state = {};
  const layout::Version first{"0123456789abcdef", {3, 0x00000000ffc00011}, 30, 3, 3, 1, "/ck/30/a.0", 17, 5, 3, 0, "/ck/a.0"};
  layout::Version second = first, roll = first;
  second.file = "/ck/30/a.1", second.stem = "/ck/a.1", second.written = 18, second.writer = 1;
  roll.file = "/roll.30.of.0", roll.stem = "", roll.roll = layout::Roll{false, {{"/ck/30/a.0", 1, 17}}};
  layout::fill(m, {{first, 0, m.size, 0640}, {second, m.size, 0, 0600}, {roll, m.size, 0, 0600}});
  return m;
}
inline constexpr const char* first_id_in_6 = "4811cc0f1f146cc479a69034ccddeeff";

inline catalog::PoolMarker pool_marker_2() { return {"ffeeddccbbaa99887766554433221100", "0123456789abcdef0123456789abcdef", "n3"}; }

inline constexpr uint64_t record_key = 0x1234567890abcdef;

// Rows 0..2 of a sums object of rs:2+1 with units of 8 KiB: written, dropped, never written.
inline layout::Geometry record_geometry_1() { return {{2, 1, false}, layout::Placement::interleaved, false, 3, 0, 8192, 8192}; }
inline std::vector<layout::RowRecord> records_1() {
  return {{0, 6, {0x0101010101010101, 0x0202020202020202, 0xfedcba9876543210}}, {1, 7, {}}, {2, 0, {}}};
}

// ---------------------------------------------------------------- the trees: a file as the library wrote it

struct Tree {
  const char* name;
  const char* scheme;
  layout::Placement placement;
};
inline const std::vector<Tree> trees{{"mirror-2", "mirror:2", layout::Placement::separate}, {"rs-2-1", "rs:2+1", layout::Placement::interleaved}};
inline constexpr uint64_t tree_bytes = 21000;  // a few rows of 4 KiB units and an odd end
inline constexpr char tree_directory[] = "out.dat-00000001";

inline Bytes tree_content() {
  Bytes content(tree_bytes);
  for (size_t i = 0; i < content.size(); ++i) content[i] = std::byte(i * 131 >> 3);
  return content;
}

inline layout::Manifest tree_identity(const Tree& tree) {
  layout::Manifest m;
  m.file_id = "0123456789abcdef0123456789abcdef";
  m.set_id = "fedcba9876543210fedcba9876543210";
  m.path = "/data/out.dat";
  m.directory = tree_directory;
  m.geometry.scheme = *layout::Scheme::parse(tree.scheme);
  m.geometry.placement = tree.placement;
  m.geometry.members = m.geometry.scheme.width();
  m.geometry.unit_bytes = 4096;
  m.geometry.block_bytes = layout::block_bytes_for(4096);
  for (int i = 0; i < m.geometry.members; ++i)
    m.members.push_back({std::string(31, '0') + char('1' + i), "/targets/t" + std::to_string(i), false, ""});
  return m;
}

// Of format 2: rs:2+1 with what a second opener has committed beside a lone one that was killed: part of a row that was synced, and part of
// a fresh one; both wait in its journal.
inline const Tree two_openers{"two-openers", "rs:2+1", layout::Placement::interleaved};
inline constexpr Extent second_openers_parts[] = {{100, 1000}, {30000, 1000}};
inline Bytes second_openers_bytes() { return Bytes(2000, std::byte(0x5a)); }
inline Bytes two_openers_content() {
  Bytes content = tree_content();
  content.resize(31000);
  for (const Extent& part : second_openers_parts) std::fill_n(content.begin() + long(part.offset), part.length, std::byte(0x5a));
  return content;
}

// The user's path is no part of the trees.
class NoPath final : public catalog::PathKeeper {
 public:
  Result<layout::Manifest> sidecar() override { return Status(Kind::not_found, "no sidecar"); }
  Status publish(layout::Manifest&, bool) override { return Status(); }
  Result<std::unique_ptr<target::Lock>> try_lock(bool) override { return std::make_unique<target::Lock>(); }
};

// The tree's members t0, t1, ... below `root`; those that are not there are lost.
inline catalog::Located locate(const fs::path& root, const layout::Manifest& manifest) {
  catalog::Located located;
  located.manifest = manifest;
  located.path_keeper = std::make_shared<NoPath>();
  for (int i = 0; i < manifest.geometry.members; ++i) {
    catalog::Member member;
    member.index = i;
    member.uuid = manifest.members[size_t(i)].uuid;
    member.path = (root / ("t" + std::to_string(i))).string();
    auto target = target::open_directory(member.path);
    if (target.ok()) {
      member.target = *target;
      member.lane = target::make_inline_lane();
    } else {
      member.lost = target.status();
    }
    located.members.push_back(std::move(member));
  }
  return located;
}

}  // namespace holdfast::golden
