// A directory with plain and protected files, and a front end that may have some of them open.
#pragma once
#include <fcntl.h>

#include <map>
#include <set>

#include "base/raw_syscalls.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "tree/conversion.hpp"
#include "tree/look.hpp"
#include "tree/tree.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::tree {

namespace fs = std::filesystem;

class FakeOpened final : public Opened {
 public:
  Status unlink() override { return ++unlinks, answer; }
  Status rename(const std::string& to) override { return renamed_to = to, answer; }
  Result<uint64_t> size() override { return answer.ok() ? Result<uint64_t>(bytes) : Result<uint64_t>(answer); }
  Identity identity_of_copy() override { return copy; }
  int64_t written_ns() const override { return written; }

  Status answer;
  int unlinks = 0;
  std::string renamed_to;
  uint64_t bytes = 0;
  Identity copy;
  int64_t written = 0;
};

class FakeOpenings final : public Openings {
 public:
  explicit FakeOpenings(const Settings& settings) : settings_(settings) {}
  std::shared_ptr<Opened> find(const std::string& file_id) override {
    const auto found = open.find(file_id);
    return found == open.end() ? nullptr : found->second;
  }
  Status set_size(catalog::Located located, uint64_t bytes) override {
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(located), {.read = true, .write = true}, settings_, *alone);
    if (!file) return file.status();
    const Status cut = (*file)->set_size(bytes), closed = (*file)->close();
    return cut.ok() ? closed : cut;
  }
  bool is_written(uint64_t, uint64_t) override { return written; }
  void leave_directory(const std::string& absolute) override { left.push_back(absolute); }

  std::map<std::string, std::shared_ptr<FakeOpened>> open;
  std::vector<std::string> left;
  bool written = false;

 private:
  const Settings& settings_;
};

class Forest : public catalog::Scene {
 protected:
  Forest() {
    targets(2, "mirror:2");
    settings.path_globs = {"*.dat"};
  }

  Status protect(const std::string& name, const std::string& content) {
    const std::string from = user("source.txt");
    write(from, content);
    const raw::Fd source(raw::openat(AT_FDCWD, from.c_str(), O_RDONLY | O_CLOEXEC));
    const Status status = protect_copy(source.get(), from, user(name), 0644, settings);
    fs::remove(from);
    return status;
  }
  Name name(const std::string& name) const { return {user(name), is_protected(AT_FDCWD, user(name).c_str(), false)}; }
  bool is_ours(const std::string& of) const { return name(of).is_protected; }
  std::string content(const std::string& name) {
    auto located = catalog::locate(user(name), settings);
    if (!located) return "(" + located.status().sentence() + ")";
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(*located), {}, settings, *alone);
    if (!file) return "(" + file.status().sentence() + ")";
    Bytes bytes(*(*file)->size());
    const Extent all{0, bytes.size()};
    const auto got = (*file)->read({&all, 1}, bytes);
    (void)(*file)->close();
    return got ? std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) : "(" + got.status().sentence() + ")";
  }
  std::shared_ptr<FakeOpened> open(const std::string& name) {
    auto file = std::make_shared<FakeOpened>();
    openings.open[catalog::locate(user(name), settings)->manifest.file_id] = file;
    return file;
  }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root / "home")) names.insert(entry.path().filename());
    return names;
  }

  Answer rename(const std::string& from, const std::string& to, const Renaming& how = {}) {
    return tree.rename(name(from), name(to), how,
                       [&] { return native_error ? (errno = native_error, -1) : ::rename(user(from).c_str(), user(to).c_str()); });
  }

  int native_error = 0;  // the kernel's, for what only it can tell
  FakeOpenings openings{settings};
  const Tree tree{settings, openings, plain_calls};
};

}  // namespace holdfast::tree
