// The layers of one open file, as this process has them, from where the bytes lie up to what the caller uses.
#pragma once
#include <memory>

#include "base/config.hpp"
#include "base/file_layer.hpp"
#include "engine/protected_file.hpp"
#include "layers/appended/appended.hpp"
#include "layers/buffered/buffered.hpp"

namespace holdfast::redundant {
class Replica;
}

namespace holdfast::file {

class Coordinated;
struct Led;

// Where the bytes lie, and what the layers above it have to know of that.
struct Bottom {
  std::unique_ptr<FileLayer> file;
  engine::ProtectedFile* protected_file = nullptr;  // the same, where it is one
  bool is_protected = false;                        // also where another replica has it open
  uint64_t row_bytes = 1;                           // what buffers begin and end with
  bool reads = true, writes = false;                // what it can be asked for
  std::string name;                                 // a plain file's path; of what replicas use as one
  int descriptor = -1;                              // of a plain file
  std::shared_ptr<Led> led;                         // in the place of `file`: what the leader of several replicas opens
};

class Stack {
 public:
  Stack() = default;  // none yet
  // Of a process on its own. `buffers`: as the settings say; else none. Appends to a protected file wait for their place.
  static Result<Stack> over(Bottom bottom, bool buffers, const Settings& settings);

  explicit operator bool() const { return top_ != nullptr; }
  FileLayer* operator->() const { return top_.get(); }
  FileLayer& operator*() const { return *top_; }
  bool writes() const { return writes_; }
  // Of the layers, where there are such.
  engine::ProtectedFile* protected_file() const { return protected_file_; }
  layers::BufferedFile* buffers() const { return buffers_; }
  layers::AppendedFile* appends() const { return appends_; }
  // In the child of a fork: the layers' ways to storage are the parent's, whose locks they hold, and are not even to be closed.
  void abandon();
  // What replicas have written apart from the file comes into it; what is written from now on does so at once.
  Status join();
  Status write_through();

 private:
  Status coordinate(Bottom& bottom, const Settings& settings, redundant::Replica& replica);

  std::unique_ptr<FileLayer> top_;
  engine::ProtectedFile* protected_file_ = nullptr;
  layers::BufferedFile* buffers_ = nullptr;
  layers::AppendedFile* appends_ = nullptr;
  Coordinated* coordinated_ = nullptr;  // a plain file that replicas use as one
  bool writes_ = false;
};

}  // namespace holdfast::file
