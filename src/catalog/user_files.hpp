// Files outside the targets: the user's path and the sidecar beside it. Every call goes through
// environment.hpp: to the kernel directly, for the POSIX front end interposes libc in the same process.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "catalog/environment.hpp"
#include "layout/manifest.hpp"

namespace holdfast::catalog {

struct FileState {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t change_ns = 0, modified_ns = 0;
  uint32_t mode = 0;  // type and permission bits
  uint32_t owner = 0, group = 0;
  bool regular() const;
  bool link() const;
  bool directory() const;
  layout::PathState path_state() const { return {device, inode, size, change_ns}; }
};

// The same place whatever way leads to it: links in the parent directory resolved, the last component left as it is.
std::string absolute_path(const std::string& path);
// Of a target: what an agent serves has its address already.
std::string absolute_target(const std::string& address);
// As absolute_path, and where links stand at the path, what they lead to in the end, whether there is something or not.
std::string resolved_path(const std::string& path);
std::string parent_of(const std::string& absolute);
std::string name_of(const std::string& absolute);
std::string sidecar_of(const std::string& absolute);  // <parent>/.NAME.holdfast

Result<FileState> look(const std::string& path, bool follow_links);
// Of what is open, and of an entry of an open directory; `path` is for messages.
Result<FileState> look_at(int descriptor, const std::string& path);
Result<FileState> look_at(int directory, const std::string& name, const std::string& path);
// Kind::corrupt where there are more than `max_bytes`.
Result<std::string> read_small(const std::string& path, uint64_t max_bytes);
Result<std::string> read_small(int descriptor, const std::string& path, uint64_t max_bytes);
Result<std::string> read_beginning(const std::string& path, size_t bytes);
Result<std::string> read_link(const std::string& path);
Result<std::vector<std::string>> list_directory(const std::string& path);
Result<std::vector<std::string>> list_directory(int descriptor, const std::string& path);

Status make_directory(const std::string& path);            // Kind::exists where there is one
Status make_with_parents(const std::string& path);         // existing is ok
Status make_file(const std::string& path, uint32_t mode);  // an empty one; existing is ok
Status write_all(int descriptor, const std::string& path, const std::string& content);
// To be read, whatever links lead to it.
Descriptor open_to_read(const std::string& path);
// So many bytes as there are from `offset` on.
Result<size_t> read_at(int descriptor, const std::string& path, uint64_t offset, ByteSpan into);
Status write_at(int descriptor, const std::string& path, uint64_t offset, ByteView from);
// Through the temporary name `scratch` on the same file system: readers see the old content or the new.
Status replace_file(const std::string& path, const std::string& scratch, const std::string& content, uint32_t mode, bool durable);
// `keep_existing`: Kind::exists rather than replacing what is at `to`.
Status move(const std::string& from, const std::string& to, bool keep_existing = false);
Status unlink_file(const std::string& path);  // missing is ok
Status sync_directory(const std::string& path);
// A regular file that is there, with what makes it durable; `path` is its own, not that of a link to it.
Status sync_file(const std::string& path);
Descriptor open_to_sync(const std::string& path);
// A plain file that a protected one was made into says so in an attribute, where its file system keeps such: for programs that have it open still.
void say_made_from(int descriptor, const std::string& file_id);
bool was_made_from(const std::string& path, const std::string& file_id);
// Whether a file has the same number after the next mount: FUSE makes them up.
bool keeps_inode_numbers(const std::string& path);
// statfs(2)'s number for the kind of the file system; 0 where it cannot be asked.
uint64_t file_system_magic(const std::string& directory);

// Sees to it that calls on a file of so many members find free descriptors also where the program uses up all others. EMFILE where it cannot.
Status keep_descriptors(const std::string& path, size_t members);
Status no_descriptors(const std::string& path);

}  // namespace holdfast::catalog
