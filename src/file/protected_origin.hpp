// A protected file: found by its path each time that it is reached anew, and by its id where the path has changed. Where it has been made a plain one
// meanwhile (holdfast drain), whoever has it open goes on with that.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/followed_directory.hpp"
#include "exchange/exchange.hpp"
#include "file/open.hpp"
#include "file/origin.hpp"
#include "tree/openings.hpp"

namespace holdfast::file {

class ProtectedOrigin final : public Origin {
 public:
  ProtectedOrigin(std::string id, std::string path, const Settings& settings);

  // The bottom of the file that was found already.
  Result<Bottom> use(Found found, bool to_write);
  // Nothing is open below where these are called. The name goes or changes under the open file.
  Status rename(const std::string& to);
  Status unlink();
  // Another replica, for all of them, has done so.
  void follow_rename(const std::string& to);
  void follow_removal();
  // What has lost its name goes when nobody has it open any more.
  void remove_if_unlinked();
  void forget_unlinked() { unlinked_ = false; }  // in the child of a fork: it is the parent's to remove
  // The directory is about to go: a file in it that has lost its name goes on in the one above.
  void leave_directory(const std::string& absolute);
  bool is_unlinked() const { return unlinked_; }
  bool was_made_plain();
  // Of the whole copy that stands at the path; zeros where none ever does. `file`: this one, as it is open.
  tree::Identity identity_of_copy(const engine::ProtectedFile* file);
  bool knows_copy() const { return copy_.has_value(); }

  const std::string& path() override;
  Result<Bottom> reach(Writing writing) override;
  bool kernel_keeps() const override { return false; }
  Result<raw::Fd> lock_descriptor(int inherited) override;
  void written() override { changed_ = true; }
  void stored() override;

 private:
  Result<Bottom> reach_plain(Writing writing);
  Result<Bottom> use_as_replica(Found found);
  // Wherever it is by now. The path is kept up to date.
  Result<catalog::Located> locate();
  Status move(const std::string& to);
  void take_path(const std::string& to);
  void has_name();
  void has_no_name();
  std::string hide_in(const std::string& directory) const;

  const std::string id_;
  std::string path_;
  catalog::FollowedDirectory directory_;  // who renames a directory above the file does not tell us
  const Settings& settings_;
  const std::unique_ptr<exchange::Exchange> alone_;
  std::optional<tree::Identity> copy_;  // once it is known
  bool changed_ = false;                // since the times at the path were set
  bool unlinked_ = false;               // without a name: goes with its last descriptor
  raw::Fd held_;                        // since then: says that it is in use
  raw::Fd plain_;                       // the file that it was made into
};

}  // namespace holdfast::file
