#include "frontend/mpi/several_handles.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "frontend/mpi/file.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {
namespace {

using Files = std::vector<std::shared_ptr<MpiFile>>;

// In order of opening, which is the same on all ranks of those that they have open together.
Files handles_of(const std::string& filename, bool of_others) {
  Files all = open_files();
  std::erase_if(all, [&](const std::shared_ptr<MpiFile>& file) {
    return !file->is_protected() || file->filename != filename || (file->ranks > 1) != of_others;
  });
  return all;
}

}  // namespace

bool is_open_with_others(const std::string& filename) {
  const Files all = handles_of(filename, true);
  return std::any_of(all.begin(), all.end(), [](const auto& file) { return file->writes(); });
}

int sync_handles_of(const std::string& filename) {
  const Files own = handles_of(filename, false);
  int code = MPI_SUCCESS;
  const auto sync = [&](const std::shared_ptr<MpiFile>& file) {
    const int synced = file->writes() ? hf_File_sync(file->handle) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) code = synced;
  };
  for (const auto& file : own) sync(file);
  for (const auto& file : handles_of(filename, true)) {
    static_cast<ProtectedMpiFile&>(*file).exchange->barrier();  // all have committed what is their own
    sync(file);
  }
  for (const auto& file : own) sync(file);  // these see what was committed by the others
  return code;
}

}  // namespace holdfast::frontend
