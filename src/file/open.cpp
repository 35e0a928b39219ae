#include "file/open.hpp"

#include "catalog/catalog.hpp"
#include "catalog/descriptors.hpp"
#include "exchange/agree.hpp"

namespace holdfast::file {

namespace {

engine::Purpose access_of(const How& how, bool fresh) { return {.read = true, .write = how.write, .fresh = fresh}; }

// Kind::exists where another process was first, and this one may have it as well.
bool was_there(const Status& made, const How& how) { return made.kind() == Kind::exists && !how.exclusive; }

Status keep_descriptors_to_write(catalog::Located& located) {
  if (located.descriptors) return Status();
  auto kept = catalog::keep_descriptors_to_write(located.manifest.path, located.members.size());
  if (kept) located.descriptors = std::move(*kept);
  return kept.status();
}

}  // namespace

Result<Found> find(const std::string& path, const How& how, const Settings& settings) {
  auto located = how.make ? catalog::create(path, settings, how.mode, how.write) : catalog::locate(path, settings);
  const bool fresh = how.make && located.ok();
  if (how.make && was_there(located.status(), how)) located = catalog::locate(path, settings);
  if (!located) return located.status();
  if (how.write) HF_TRY(keep_descriptors_to_write(*located));
  return Found{std::move(*located), fresh};
}

Result<Found> find_together(const std::string& path, const How& how, const Settings& settings, exchange::Exchange& ranks) {
  Result<catalog::Located> located(Kind::internal, "not looked for yet");
  Status status;
  if (how.make && ranks.rank() == 0) {
    located = catalog::create(path, settings, how.mode, how.write);
    if (!was_there(located.status(), how)) status = located.status();
  }
  const bool fresh = ranks.all_max({ranks.rank() == 0 && how.make && located.ok()})[0] != 0;
  HF_TRY(exchange::agree(ranks, status));
  if (!fresh || ranks.rank() != 0) located = catalog::locate(path, settings);
  status = located && how.write ? keep_descriptors_to_write(*located) : located.status();
  HF_TRY(exchange::agree(ranks, status));
  return Found{std::move(*located), fresh};
}

Result<Alone> Alone::open(Found found, const How& how, const Settings& settings) {
  Alone opened;
  opened.alone_ = exchange::make_solo();
  auto file = open_together(std::move(found), how, settings, *opened.alone_);
  if (!file) return file.status();
  opened.file_ = std::move(*file);
  return opened;
}

Result<Alone> Alone::open(const std::string& path, const How& how, const Settings& settings) {
  auto found = find(path, how, settings);
  if (!found) return found.status();
  return open(std::move(*found), how, settings);
}

Alone::~Alone() {
  if (file_) (void)close();
}

Status Alone::close() {
  const auto file = std::move(file_);
  return file ? file->close() : Status();
}

Result<std::unique_ptr<engine::ProtectedFile>> open_together(Found found, const How& how, const Settings& settings, exchange::Exchange& ranks) {
  return engine::ProtectedFile::open(std::move(found.located), access_of(how, found.fresh), settings, ranks);
}

}  // namespace holdfast::file
