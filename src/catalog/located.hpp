// A protected file, found: its members and what its objects are called there. What the layer above works on;
// the simulator builds one from memory targets.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "layout/manifest.hpp"
#include "target/lane.hpp"
#include "target/target.hpp"

namespace holdfast::raw {
class Share;
}

namespace holdfast::catalog {

struct Member {
  int index = 0;
  std::string uuid;  // of the target found there; empty when lost
  std::string path;
  std::shared_ptr<target::Target> target;  // null when lost
  std::shared_ptr<target::Lane> lane;      // null when lost; one per target and process
  Status lost;                             // why there is no target
  bool untold = false;  // only the manifests on the other targets name it: a replacement was cut short before the set and the sidecar knew
  bool usable() const { return target != nullptr; }
};

// The user's path and the sidecar beside it: outside the targets, kept in step with the manifest. A seam of its own
// so that the simulator has no paths.
class PathKeeper {
 public:
  virtual ~PathKeeper() = default;
  // Where the file is by now, whoever has renamed it since it was found. `newest`: what its members say, under the file's lock; `known`: where it
  // was.
  virtual std::string path(const layout::Manifest& /*newest*/, const std::string& known) { return known; }
  // The manifest copy in the sidecar; not_found where there is none.
  virtual Result<layout::Manifest> sidecar() = 0;
  // After the manifest has been written to the members: writes the sidecar's copy and (re)makes what stands at the user's path. That is nothing for a
  // plain file, a link to a current whole copy, or the stub. Sets manifest.path_state.
  virtual Status publish(layout::Manifest& manifest, bool durable) = 0;
  // While the members write a manifest: what has to be durable before publish(next, true) names it is made so. Where this cannot be done, or
  // the manifest becomes another one, publish does all of it.
  virtual void prepare(layout::Manifest /*next*/) {}
  // As publish, and what stands there says from now on that these are the file's permission bits.
  virtual Status publish_with_mode(layout::Manifest&, uint32_t /*mode*/) { return Status(Kind::unsupported, "nothing here has permissions"); }
  // Excludes every other opener of this file while it lives, also across nodes where the file system has such locks.
  // Kind::busy: somebody else has it. A reader makes no sidecar for it (`make` false): where the file is being removed it would outlive it.
  virtual Result<std::unique_ptr<target::Lock>> try_lock(bool make = true) = 0;
};

struct Located {
  layout::Manifest manifest;    // as last read: identity and geometry are fixed, the rest may have moved on
  std::vector<Member> members;  // geometry.members of them
  // For repair: targets that are to take the place of the member of their index. They hold nothing of the file that counts until the
  // manifest names them. Until then the member that it names is read and written, where it answers.
  std::vector<Member> replacements = {};
  // Of a file that was just made to be written. Who made it is its first opener, which the manifest names; these locks say that it lives.
  std::vector<std::shared_ptr<target::Lock>> opener = {};
  std::shared_ptr<raw::Share> descriptors = {};  // what is kept for who writes it: see keep_descriptors_to_write()
  bool by_search = false;                        // nothing at the path or beside it leads to the file: a manifest on the named targets did
  std::shared_ptr<PathKeeper> path_keeper;
  Status read_only;                   // not ok: writing is refused with this sentence (a copy of the stub; the original is still there)
  std::string single_directory_name;  // base name of the user's path, for a single directory

  // For people: the member's path, and the storage nodes on which it lies where they are known.
  std::string place_of(int member) const;
  // The user's path now: see PathKeeper::path.
  std::string path_now(const layout::Manifest& newest) const { return path_keeper ? path_keeper->path(newest, manifest.path) : manifest.path; }
  bool single() const { return manifest.geometry.single_directory; }
  // Whether a lock may end while its holder lives, and goes on writing to other members: an agent ends sessions that it hears nothing of.
  bool locks_may_end() const;
  // Name on the member's target of data object `object` / of "manifest", "sums", "lock", "journal.<generation>.<rank>".
  std::string data_name(int object) const;
  std::string meta_name(int member, const std::string& what) const;
  // Of the records of neighbouring rows, which several nodes write.
  static bool holds_records(const std::string& name) { return name.ends_with("/sums") || name.ends_with(".sums"); }
};

}  // namespace holdfast::catalog
