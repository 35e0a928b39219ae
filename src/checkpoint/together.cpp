#include "checkpoint/together.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "catalog/growing.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "engine/buffers.hpp"
#include "engine/protected_file.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr size_t copied_at_once = 16 << 20;

std::string owner(const std::string& run, const layout::Attempt& attempt) { return fmt::format("{} {}\n", run, text_of(attempt)); }

// Of a version that one process writes the step stands behind that: see remove_unfinished().
bool is_of_run_until(const std::string& owner, const std::string& run, const layout::Attempt& last) {
  std::istringstream words(owner);
  std::string of, attempt, step;
  words >> of >> attempt;
  const auto which = layout::parse_attempt(attempt);
  return of == run && which && *which <= last && !(words >> step);
}

Status copy(int from, const std::string& path, engine::ProtectedFile& to, uint64_t at_once) {
  engine::Buffer piece(at_once);
  if (!piece.valid()) return Status(Kind::internal, "no memory for a piece of " + path);
  for (uint64_t at = 0;;) {
    const auto got = catalog::read_at(from, path, at, piece.span());
    if (!got) return got.status();
    if (*got == 0) return {};
    const Extent extent{at, *got};
    HF_TRY(to.write({&extent, 1}, piece.span().first(*got)));
    at += *got;
  }
}

}  // namespace

Result<catalog::Located> grow(const layout::Version& version, const std::string& own, uint32_t mode, const Settings& settings) {
  return catalog::make_growing(version.file, own, mode, owner(version.run, version.attempt), settings);
}

Status begin_with(const catalog::Located& growing, int from, const std::string& path, const Settings& settings) {
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(growing, {.read = true, .write = true, .fresh = true}, settings, *alone);
  if (!file) return file.status();
  const Status copied = copy(from, path, **file, std::min<uint64_t>(copied_at_once, settings.buffer_bytes));
  const Status closed = (*file)->close();
  return copied ? closed : copied;
}

Result<uint64_t> generation_of(const catalog::Located& growing, const Settings& settings) {
  const auto alone = exchange::make_solo();
  const auto file = engine::ProtectedFile::open(growing, {}, settings, *alone);
  return file ? Result<uint64_t>((*file)->located().manifest.next_generation) : file.status();
}

Result<int> complete(const catalog::Located& growing, const layout::Version& version, const Settings& settings) {
  const auto lost = engine::make_final(growing, version, settings);
  if (lost) catalog::release_growing(growing);
  return lost;
}

void give_up(const catalog::Located& growing) { (void)catalog::remove_version(growing); }

void remove_left(const std::string& run, const layout::Attempt& last, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  catalog::remove_growing(
      nodes, [run, last](const std::string& owner) { return is_of_run_until(owner, run, last); }, deadline_ms);
}

}  // namespace holdfast::checkpoint
