#include "layers/shared_records/shelf.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "catalog/user_files.hpp"
#include "target/address.hpp"
#include "target/name_lock.hpp"

namespace holdfast::layers {

namespace {

std::string directory_of(const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? std::string() : prefix.substr(0, slash);
}
std::string beginning_of(const std::string& prefix) { return prefix.substr(prefix.rfind('/') + 1); }

}  // namespace

Status Shelf::prepare() {
  if (prepared_) return Status();
  Status last;
  bool any = false;
  for (const Holder& holder : holders_) {
    const std::string directory = directory_of(holder.prefix);
    if (!directory.empty()) last = holder.run([target = holder.target, directory] { return target->make_directory(directory); });
    any = any || last.ok();
  }
  if (!any) return last.ok() ? Status(Kind::lost, where_ + ": no target is left for the records") : last;
  prepared_ = true;
  return Status();
}

Result<std::vector<std::string>> Shelf::list() const {
  std::set<std::string> names;
  Status last;
  bool any = false;
  for (const Holder& holder : holders_) {
    auto found = std::make_shared<std::vector<std::string>>();
    const Status status = holder.run([target = holder.target, found, directory = directory_of(holder.prefix)] {
      auto all = target->list(directory);
      if (all.ok()) *found = std::move(*all);
      return all.status();
    });
    if (!status.ok() && status.kind() != Kind::not_found) {
      last = status;
      continue;
    }
    any = true;
    const std::string beginning = beginning_of(holder.prefix);
    for (const std::string& name : *found)
      if (name.compare(0, beginning.size(), beginning) == 0 && !target::is_name_of_lock(name)) names.insert(name.substr(beginning.size()));
  }
  if (!any && !last.ok()) return last;
  return std::vector<std::string>(names.begin(), names.end());
}

Status Shelf::put(const std::string& name, const std::string& content, bool durable) {
  HF_TRY(prepare());
  const auto view = std::as_bytes(std::span(content));
  const auto bytes = std::make_shared<Bytes>(view.begin(), view.end());
  Status last(Kind::lost, where_ + ": no target is left for the records");
  bool any = false;
  for (const Holder& holder : holders_) {
    last = holder.run([target = holder.target, bytes, durable, full = holder.prefix + name] { return target->put(full, *bytes, durable); });
    any = any || last.ok();
  }
  return any ? Status() : last;
}

Result<std::vector<Bytes>> Shelf::get(const std::string& name, uint64_t max_bytes) const {
  std::vector<Bytes> all;
  Status last;
  for (const Holder& holder : holders_) {
    auto content = std::make_shared<Bytes>();
    const Status status = holder.run([target = holder.target, content, max_bytes, full = holder.prefix + name] {
      auto got = target->get(full, max_bytes);
      if (got.ok()) *content = std::move(*got);
      return got.status();
    });
    if (status.ok()) all.push_back(std::move(*content));
    else if (status.kind() != Kind::not_found) last = status;
  }
  if (all.empty() && !last.ok()) return last;
  return all;
}

void Shelf::remove(const std::string& name) {
  for (const Holder& holder : holders_) (void)holder.run([target = holder.target, full = holder.prefix + name] { return target->remove(full); });
}

Status Shelf::remove_emptied(const std::string& name) {
  Status first;
  for (const Holder& holder : holders_) {
    const Status status = holder.run([target = holder.target, full = holder.prefix + name] {
      auto object = target->open(full, target::OpenMode::write);
      if (!object.ok()) return object.status();
      HF_TRY((*object)->truncate(0));
      HF_TRY((*object)->sync());
      return target->remove(full);
    });
    if (!status.ok() && status.kind() != Kind::not_found && first.ok()) first = status;
  }
  return first;
}

Result<std::vector<std::string>> Shelf::break_locks() const {
  std::vector<std::string> broken;
  for (const Holder& holder : holders_) {
    auto found = std::make_shared<std::vector<std::string>>();
    const Status status = holder.run([target = holder.target, found, directory = directory_of(holder.prefix)] {
      auto names = target->break_locks(directory);
      if (names.ok()) *found = std::move(*names);
      return names.status();
    });
    if (!status.ok() && status.kind() != Kind::not_found) return status;
    broken.insert(broken.end(), found->begin(), found->end());
  }
  return broken;
}

void Shelf::tidy() {
  for (const Holder& holder : holders_) {
    if (holder.prefix.empty() || holder.prefix.back() != '/') continue;  // a directory that holds more than logs
    const std::string directory = directory_of(holder.prefix);
    (void)holder.run([target = holder.target, directory] {
      auto left = target->list(directory);
      return left.ok() && left->empty() ? target->remove_directory(directory) : left.status();
    });
  }
  prepared_ = false;
}

std::string records_directory_of(const std::string& path) {
  return fmt::format("{}/.{}.holdfast-records", catalog::parent_of(path) == "/" ? "" : catalog::parent_of(path), catalog::name_of(path));
}

Result<std::shared_ptr<Shelf>> shelf_beside(const std::string& path, uint32_t mode) {
  target::DirectoryOptions options;
  options.mode = mode_t(mode & 0777);
  auto parent = target::open(catalog::parent_of(path), options);
  if (!parent) return parent.status();
  std::vector<Shelf::Holder> holders{{*parent, nullptr, "." + catalog::name_of(path) + ".holdfast-records/"}};
  return std::make_shared<Shelf>(std::move(holders), 1, records_directory_of(path));
}

namespace {

std::shared_ptr<Shelf> shelf_on(const catalog::Located& located, const std::function<std::string(int)>& prefix) {
  std::vector<Shelf::Holder> holders;
  std::string where;
  for (const catalog::Member& member : located.members) {
    if (!member.usable() || located.manifest.members[size_t(member.index)].stale) continue;
    holders.push_back({member.target, member.lane, prefix(member.index)});
    if (where.empty()) where = member.path;
  }
  return std::make_shared<Shelf>(std::move(holders), located.manifest.geometry.scheme.m + 1, where);
}

}  // namespace

std::shared_ptr<Shelf> shelf_on_targets(const catalog::Located& located) {
  return shelf_on(located, [&](int member) { return located.meta_name(member, "records."); });
}

std::shared_ptr<Shelf> shelf_of_set(const catalog::Located& located) {
  if (located.single() || located.manifest.pool) return shelf_on_targets(located);  // there is no set: the first file's own place serves
  return shelf_on(located, [](int) { return std::string("holdfast-records/"); });
}

}  // namespace holdfast::layers
