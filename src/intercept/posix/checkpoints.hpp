// Checkpoints at the doors: which path is opened in the place of the program's, and what hears that a number is closed.
#pragma once
#include <sys/types.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/posix/checkpoints.hpp"
#include "frontend/posix/own_code.hpp"

namespace holdfast::intercept::posix {

using frontend::posix::Checkpoints;

// The process's; null where it keeps none, or in our own code.
Checkpoints* checkpoints();
// Whether a path is one of its checkpoints; of a call that follows links, also where a link of the program's leads to one.
std::optional<Checkpoints::File> checkpoint_at(int directory, const char* path, bool follow = true);

// ... which ranks write together on the nodes: no local file is there for it.
bool is_checkpoint_on_nodes(const char* path);

// The checkpoint that a number reads from the node's copy; empty where there is none. What is written there would be in no version.
std::string checkpoint_read_by(int number);

// The job has ended, and this process lives on: nobody would protect what it writes. Said once.
bool is_late(const std::string& path);

// An open of a checkpoint: the program's descriptor, or -1 and errno. Nothing: it is opened as without.
std::optional<int> open_checkpoint(int directory, const char* path, int flags, mode_t mode);

// Where a checkpoint is to be looked at. `natively`: at the path itself. `path` is empty where there is none, and errno says so.
struct SeenAt {
  bool natively = true;
  std::string path;
  std::string grows = {};  // its id where it is written on the nodes' targets: what stands there has its size, and no content
};
SeenAt see_checkpoint(int directory, const char* path, bool follow = true);
// For who asks for its size and permissions alone.
SeenAt describe_checkpoint(int directory, const char* path, bool follow);
// The same once more, within one call of the program's: in a redundant job all replicas have looked together before.
SeenAt see_checkpoint_again(int directory, const char* path);
// Of a call that makes something else of that name: 0, or why it cannot. EEXIST where a checkpoint has it.
int why_name_is_taken(int directory, const char* path);
// The call on what is seen there. A file that goes on to its next state between the look and the call is looked for anew.
template <class Call>
auto call_where_it_is(SeenAt seen, int directory, const char* path, Call call) -> decltype(call(path)) {
  while (!seen.path.empty()) {
    const auto result = call(seen.path.c_str());
    if (result >= 0 || errno != ENOENT) return result;
    SeenAt now = see_checkpoint_again(directory, path);
    if (now.natively || now.path == seen.path) return errno = ENOENT, -1;
    seen = std::move(now);
  }
  return -1;
}

// Whether a call on the number is to be told of below. checkpoint_closed() of a number that something else has taken the place of already.
inline bool writes_checkpoint(int fd) { return Checkpoints::is_written(fd); }
int checkpoint_closing(int fd);
void checkpoint_closed(int fd);
// With `--protect-at close`, of a file that got its name, or was closed, just now.
void wait_for_protection(const std::string& path);
void checkpoint_truncated(int fd, int64_t length);
// Before a stream of such a number is closed: its bytes are the kernel's, or the file is noted as not written. 0, or the errno.
int checkpoint_flushed(FILE* stream, int fd);
// A native call that writes, or syncs, has failed with this errno. Where the number leads to none of them nothing happens.
void checkpoint_write_failed(int fd, int error);
// At the end of a process the C library could not write all that its streams had.
void checkpoint_end_failed(int error);
void checkpoint_duplicated(int from, int to);
// Around a call that closes a number: it may be another thread's before that call returns.
class ClosingCheckpoint {
 public:
  explicit ClosingCheckpoint(int fd) {
    if (writes_checkpoint(fd)) [[unlikely]]
      written_ = checkpoint_closing(fd);
  }
  // What the program's close has answered.
  int ends(int answer) {
    if (written_ != 0 && answer != 0) [[unlikely]]
      checkpoint_write_failed(written_, errno);
    return answer;
  }
  ~ClosingCheckpoint() {
    if (written_ != 0) [[unlikely]]
      checkpoint_closed(written_);
  }
  ClosingCheckpoint(const ClosingCheckpoint&) = delete;

 private:
  int written_ = 0;
};
// The same of many.
class ClosingCheckpoints {
 public:
  ClosingCheckpoints(unsigned first, unsigned last);
  ~ClosingCheckpoints();
  ClosingCheckpoints(const ClosingCheckpoints&) = delete;

 private:
  std::vector<int> written_;  // empty in a forked child, which has nothing to tell
};
void all_checkpoints_closed(bool ended_well);
// The process ends well, and what it wrote has arrived: also of what processes of several nodes write.
void shared_checkpoints_closed();
// Around an exec; the first says whether there was something to hand over.
bool checkpoints_handed_over(bool is_served);
void checkpoints_not_handed_over();

}  // namespace holdfast::intercept::posix
