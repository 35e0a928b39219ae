// Where the record logs of one main file lie: one directory beside a plain file, or the targets of a protected one. Each log is on so many of them
// that losing M loses nothing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "catalog/located.hpp"
#include "target/lane.hpp"
#include "target/target.hpp"

namespace holdfast::layers {

class Shelf {
 public:
  struct Holder {
    std::shared_ptr<target::Target> target;
    std::shared_ptr<target::Lane> lane;  // null: called directly, as the program's own writes of a plain file are
    std::string prefix;                  // before every name: "<directory>/" or "<directory>/records."
    Status run(const std::function<Status()>& call) const { return lane ? lane->run(call) : call(); }
  };
  Shelf(std::vector<Holder> holders, int copies, std::string where) : holders_(std::move(holders)), copies_(copies), where_(std::move(where)) {}

  const std::vector<Holder>& holders() const { return holders_; }
  int copies() const { return copies_; }
  const std::string& where() const { return where_; }  // for messages: a directory's path
  // Makes the directories that the prefixes name; called before the first object is made.
  Status prepare();
  // The same although it was done before: another process may have tidied up.
  Status prepare_again() {
    prepared_ = false;
    return prepare();
  }
  // Names without the prefix, on any holder that answers; none where there is no such directory.
  Result<std::vector<std::string>> list() const;
  // On every holder; fails where none takes it.
  Status put(const std::string& name, const std::string& content, bool durable);
  // What each holder that has it says; an error where none has it and one could not say.
  Result<std::vector<Bytes>> get(const std::string& name, uint64_t max_bytes) const;
  void remove(const std::string& name);
  // Durably empty before it goes: a power failure may bring the name back, but with nothing in it. Of some ranks' logs alone
  // the places of records would come out wrong.
  Status remove_emptied(const std::string& name);
  // By the user's word: what Target::break_locks does, where the logs lie.
  Result<std::vector<std::string>> break_locks() const;
  // Removes the directory of a plain file's logs where nothing is left in it.
  void tidy();

 private:
  std::vector<Holder> holders_;
  int copies_;
  std::string where_;
  bool prepared_ = false;
};

// Beside the plain file `path`: `.NAME.holdfast-records/`; new objects get the main file's permission bits.
Result<std::shared_ptr<Shelf>> shelf_beside(const std::string& path, uint32_t mode);
// On the members of a protected file that are neither lost nor stale, under the file's own names.
std::shared_ptr<Shelf> shelf_on_targets(const catalog::Located& located);
// On the same members, apart from any file: for logs that serve several files.
std::shared_ptr<Shelf> shelf_of_set(const catalog::Located& located);
std::string records_directory_of(const std::string& path);  // the first of these

}  // namespace holdfast::layers
