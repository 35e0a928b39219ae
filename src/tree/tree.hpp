// What programs do with names: each call's outcome is a Status, and lines for standard error, which the caller prints.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "tree/decide.hpp"
#include "tree/openings.hpp"

namespace holdfast::tree {

struct Line {
  std::string path, sentence;
};

struct Answer {
  bool natively = false;  // the native call does the rest, whose answer counts
  Status status = {};
  std::vector<Line> lines = {};
};
// With a line where the error does not say it all: names that lead nowhere and other file systems are told by their numbers alone.
Answer answer_of(const std::string& path, Status status);

struct Seen {
  uint64_t size = 0;
  Identity is;
  int64_t written_ns = 0;
};
// One number for a file as long as it lives: what stands at its path is replaced whenever it is synced. But where a whole copy stands at the
// path it is the copy's, for whoever looks when nobody has the file open gets that.
Identity identity_of(const std::string& file_id, Identity of_copy);
// What is described in the place of a protected file's lost entry: it has the file's owner, times and permissions.
std::string in_place_of_lost_entry(const std::string& path);

// A name, and whether a protected file stands there (look.hpp; links of the user's own are not followed).
struct Name {
  std::string path;
  bool is_protected = false;
};
struct Renaming {
  bool keeps_existing = false;  // RENAME_NOREPLACE
  bool does_more = false;       // any other flag
};

using Native = std::function<int()>;  // 0, or -1 and errno

class Tree {
 public:
  // Both outlive it.
  Tree(const Settings& settings, Openings& openings, const Scope& scope) : settings_(settings), openings_(openings), scope_(scope) {}

  // Of protected files. `is_copy`: a whole copy stands at the path, and its entry says who it is.
  Result<Seen> stat(const std::string& path, bool is_copy) const;
  Answer unlink(const std::string& path) const;
  Answer truncate(const std::string& path, uint64_t bytes) const;

  // Of anything: where neither name is a protected file's and the policy does not name `to`, it is the native call's. What is at a name keeps it
  // where the rename fails. `native`: the native call, made in here where what it replaces can come back.
  Answer rename(const Name& from, const Name& to, const Renaming& how, const Native& native) const;

  // A directory that shows nothing is emptied, so that it can be removed. Fails where it shows something.
  Status clear_directory(const std::string& path) const;

 private:
  std::shared_ptr<Opened> opened(const std::string& path) const;
  bool becomes_protected(const Name& from, const Name& to) const;
  Answer rename_as_it_is(const Name& from, const Name& to, const Renaming& how, const Native& native) const;
  Answer move(const std::string& from, const std::string& to) const;
  Answer rename_over(const Name& from, const std::string& to, const Native& native) const;

  const Settings& settings_;
  Openings& openings_;
  const Scope scope_;
};

}  // namespace holdfast::tree
