// An open file that all replicas of a rank use as one; see README.md. One call after the other.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/file_layer.hpp"
#include "file/coordinated/parts.hpp"
#include "file/coordinated/protocol.hpp"
#include "layers/buffered/background.hpp"
#include "layers/buffered/begun_writes.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

enum class Call : uint64_t {
  write = 1,
  read,
  append,
  size,
  sync,
  set_size,
  close,
  zero,
  next,
  allocate,
  open,
  unlink,
  rename,
  make_directory,
  write_all,
  read_all,
  set_atomic,
  end_of_write,
  link,
  set_mode,
  join,
  end_of_join,
  set_attributes,
  look,
  put_at_end,
  make_node,
  begin_write,
  end_of_begun_write
};

// A number for what calls are about: the same in all replicas, other for another file, and for another open of it.
uint64_t subject_of(const std::string& kind, const std::string& path);
uint64_t subject_of_next_open(redundant::Replica& replica, const std::string& path);

// What only the leader has open: a protected file, which would have several writers otherwise. Its bytes outlive the leader only by a sync.
struct Led {
  // `first`: as the program opens it; else by a leader that takes over.
  std::function<Result<std::unique_ptr<FileLayer>>(bool first)> open;
  // What is committed, without opening it.
  std::function<Result<uint64_t>()> committed_end;
};
Result<std::unique_ptr<FileLayer>> coordinated(Led led, redundant::Replica& replica, uint64_t subject, std::string name, Protocols protocols);

// What replicas have written apart from the file comes into it at the latest when somebody is to see it.
class Coordinated : public FileLayer {
 public:
  // For those who see the file by other ways than this one.
  virtual Status join() = 0;
  // From now on nothing is written apart from the file.
  virtual Status write_through() = 0;
  // Null: each write is over when it returns. Every other call ends what was begun first.
  virtual layers::BegunWrites* begun_writes() = 0;
};

// What each replica has open, with the kernel below. `name` is for messages. `parts`: for writes that are joined later.
std::unique_ptr<Coordinated> coordinated(std::unique_ptr<FileLayer> below, redundant::Replica& replica, uint64_t subject, std::string name,
                                         Protocols protocols = {}, std::unique_ptr<Parts> parts = nullptr,
                                         layers::Background& background = layers::background_thread());

}  // namespace holdfast::file
