// A file of a checkpoint (docs/checkpoints.md) that the program opens by MPI_File_open: the MPI underneath opens it on the node's own disk. It gets
// the kernel's name of a descriptor that is held meanwhile, for the file's own name changes with its state. Where it appends it gets a link to that: ROMIO
// makes a file of its own beside what it opens so, for where the shared pointer stands.
#pragma once
#include <memory>
#include <string>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "frontend/posix/checkpoints.hpp"

namespace holdfast::frontend {

class LocalCheckpoint {
 public:
  static bool is_one(const Settings& settings, const std::string& path);
  static Result<std::unique_ptr<LocalCheckpoint>> open(const Settings& settings, const std::string& path, int amode);
  ~LocalCheckpoint() { (void)close(false); }
  LocalCheckpoint(const LocalCheckpoint&) = delete;

  // What MPI is to open, and how: what creates or removes the file is done here.
  const std::string& name() const { return link_.empty() ? name_ : link_; }
  int amode_for_mpi(int amode) const;
  // When MPI has closed it: it is protected from then on, or gone.
  Status close(bool and_remove);

 private:
  LocalCheckpoint(const Settings& settings, std::string path) : settings_(settings), path_(std::move(path)), name_(path_) {}
  Status open_to_write(int amode);
  Status open_to_read();
  Status open_copy_of(const posix::Checkpoints::File& file, const std::string& file_id);

  const Settings& settings_;  // of the process
  const std::string path_;
  std::string name_, link_;  // empty: there is none
  raw::Fd descriptor_;
  bool writes_ = false;
};

}  // namespace holdfast::frontend
