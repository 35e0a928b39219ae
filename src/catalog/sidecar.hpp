// The hidden directory beside the user's path, by a descriptor of it. A link in its place, or in the place of what lies in it, is never followed,
// also where it is put there while we work. So nothing outside the file's own path is ever written.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "layout/manifest.hpp"
#include "target/target.hpp"

namespace holdfast::target {
class NameStore;
}

namespace holdfast::catalog {

struct NewStub {
  std::string text;
  uint32_t mode = 0;                // of the file itself, whatever the umask is now
  std::optional<FileState> before;  // in whose place it comes: whose attributes, owner and group it keeps where that is permitted
  bool keeps_times = false;         // and whose times: the file has the same content
};

class Sidecar {
 public:
  // `path`: of the directory itself. Kind::not_found where nothing is there; Kind::invalid, with the mend, where something else is.
  static Result<Sidecar> open(const std::string& path);
  static Result<Sidecar> open_or_make(const std::string& path);
  // With the files in it; missing is ok. Of a link in its place the link itself goes.
  static Status remove(const std::string& path);
  Status remove() const;  // this one, whatever has its name by now

  Result<FileState> state() const;  // of the directory itself
  Result<std::vector<std::string>> names() const;
  Result<std::string> read(const std::string& name, uint64_t max_bytes) const;
  Result<layout::Manifest> manifest(const std::string& name = "manifest") const;
  // Readers see the old content or the new.
  Status put(const std::string& name, const std::string& content, bool durable) const;
  // A durable `put` in steps: the content under a name of its own; the caller's fsync of it; the name.
  struct Staged {
    std::string scratch;
    Descriptor file;
  };
  Result<Staged> stage(const std::string& content) const;
  Status put_staged(const std::string& name, const std::string& scratch) const;
  // A `put` of an entry beside the sidecar: a stub, or a link. The stub's content is written before it has its name, for nobody could tell from a
  // torn one whose it is; durably or only before the name.
  Status put_stub_beside(const std::string& name, const NewStub& stub, bool durable) const;
  Status link_beside(const std::string& name, const std::string& leads_to) const;
  // A file of the sidecar gets a name beside it. Kind::exists rather than replacing what has that name, with `keep_existing`.
  Status move_beside(const std::string& name, const std::string& beside, bool keep_existing) const;
  Status remove_file(const std::string& name) const;  // missing is ok
  // Entries of the directory that holds the sidecar: itself, and what stands at the user's path.
  Status sync_parent() const;
  Descriptor parent() const;  // that directory, to be synced with others
  // A regular file, made where it is missing and `flags` say so.
  Result<Descriptor> open_file(const std::string& name, int flags) const;
  // Kind::busy where somebody else has it. By name too, where the kernel's locks stop at the node.
  Result<std::unique_ptr<target::Lock>> lock(const std::string& name) const;
  // By the user's word: what target::break_locks does, here.
  Result<std::vector<std::string>> break_locks() const;
  // The directory for those calls that want more of it than its name, such as flock(2).
  Descriptor descriptor() const;

 private:
  Sidecar(Descriptor parent, Descriptor directory, std::string path)
      : parent_(std::move(parent)), directory_(std::move(directory)), path_(std::move(path)) {}
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  Result<Descriptor> write(const std::string& scratch, const std::string& content) const;
  Status fill(const std::string& scratch, const std::string& content, bool durable) const;
  Status fill_stub(const std::string& scratch, const std::string& name, const NewStub& stub,
                   bool durable) const;  // in the place of what is `name`
  // What `fill` has put under its scratch name gets its own.
  template <class Fill>
  Status put_at(int directory, const std::string& name, Fill fill) const;
  Result<Descriptor> lock_by_kernel(const std::string& name) const;
  std::shared_ptr<target::NameStore> names_of_locks() const;

  Descriptor parent_, directory_;
  std::string path_;
};

// Its manifest, where there is a sidecar that has one.
Result<layout::Manifest> read_sidecar_manifest(const std::string& sidecar);

}  // namespace holdfast::catalog
