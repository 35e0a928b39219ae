// Writes the golden files of the present format: `golden_write FOLDER`. Run once for each format, see README.md.
#include <cstdio>
#include <fstream>

#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "golden/files.hpp"
#include "golden/records.hpp"
#include "unit/profile/example_log.hpp"

namespace holdfast::golden {
namespace {

bool write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  return bool(file.flush());
}

Status write_tree(const fs::path& root, const Tree& tree) {
  const layout::Manifest identity = tree_identity(tree);
  for (int i = 0; i < identity.geometry.members; ++i) fs::create_directories(root / ("t" + std::to_string(i)) / identity.directory);
  auto solo = exchange::make_solo();
  auto file = engine::ProtectedFile::open(locate(root, identity), {true, true, true}, Settings(), *solo);
  if (!file) return file.status();
  const Bytes content = tree_content();
  const Extent all{0, content.size()};
  HF_TRY((*file)->write(std::span(&all, 1), content));
  return (*file)->close();
}

// As two_openers says: the lone opener goes without a close.
Status write_two_openers(const fs::path& root) {
  HF_TRY(write_tree(root, two_openers));
  const layout::Manifest identity = tree_identity(two_openers);
  auto solo = exchange::make_solo();
  auto lone = engine::ProtectedFile::open(locate(root, identity), {true, true, false}, Settings(), *solo);
  if (!lone) return lone.status();
  auto second = engine::ProtectedFile::open(locate(root, identity), {true, true, false}, Settings(), *solo);
  if (!second) return second.status();
  HF_TRY((*second)->write(second_openers_parts, second_openers_bytes()));
  return (*second)->close();
}

Status write_records(const fs::path& root, layers::Staging staging) {
  fs::create_directories(root);
  if (!write_file(root / "out", main_as_left()) || !write_file(root / "merged", main_as_merged()))
    return Status(Kind::io, "the main file was not written");
  return leave_records(root / "out", golden_main_state, staging);
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  bool ok = write_file(folder / "manifest", layout::encode(manifest_2()));
  const layout::Geometry g = record_geometry_1();
  std::string sums;
  for (const layout::RowRecord& record : records_1()) {
    std::string slot(layout::record_slot_bytes(g), '\0');
    if (record.generation) layout::encode_record(g, record_key, record, reinterpret_cast<std::byte*>(slot.data()));
    sums += slot;
  }
  ok = ok && write_file(folder / "sums", sums);
  for (const Tree& tree : trees) {
    Status status = write_tree(folder / tree.name, tree);
    if (!status.ok()) std::fprintf(stderr, "%s: %s\n", tree.name, status.sentence().c_str());
    ok = ok && status.ok();
  }
  Status status = write_two_openers(folder / two_openers.name);
  if (status.ok()) status = write_records(folder / "records", {});
  if (status.ok()) status = write_records(folder / "records-staged", golden_staging);
  if (!status.ok()) std::fprintf(stderr, "records: %s\n", status.sentence().c_str());
  return ok && status.ok() ? 0 : 1;
}

// A job's log and its content: logs have a format number of their own.
int write_log(const fs::path& folder) {
  fs::create_directories(folder);
  const profile::Log log = profile::example_log();
  return write_file(folder / "job.hflog", profile::encode(log)) && write_file(folder / "job.json", profile::to_json_text(log)) ? 0 : 1;
}

// Of files on pools the manifest and the directories' markers alone are of a format of their own.
int write_pool(const fs::path& folder) {
  fs::create_directories(folder);
  return write_file(folder / "manifest", layout::encode(manifest_3())) && write_file(folder / "marker", catalog::encode(pool_marker_2())) ? 0 : 1;
}

int write_wide(const fs::path& folder) {
  fs::create_directories(folder);
  return write_file(folder / "manifest", layout::encode(manifest_5())) ? 0 : 1;
}

int write_pack(const fs::path& folder) {
  fs::create_directories(folder);
  return write_file(folder / "manifest", layout::encode(manifest_6())) ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::golden

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--pool" && !holdfast::golden::fs::exists(argv[2])) return holdfast::golden::write_pool(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--wide" && !holdfast::golden::fs::exists(argv[2])) return holdfast::golden::write_wide(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--pack" && !holdfast::golden::fs::exists(argv[2])) return holdfast::golden::write_pack(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--log" && !holdfast::golden::fs::exists(argv[2])) return holdfast::golden::write_log(argv[2]);
  if (argc != 2 || holdfast::golden::fs::exists(argv[1])) {
    std::fprintf(stderr, "usage: golden_write [--log|--pack|--pool|--wide] FOLDER (that does not exist yet: golden files are never written again)\n");
    return 2;
  }
  return holdfast::golden::run(argv[1]);
}
