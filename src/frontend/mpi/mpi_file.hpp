// One open file as this process sees it, and the table from the program's handles to them. A protected file is served whole (file.hpp); one
// under no policy is MPI's own in everything but the shared pointer (native.hpp).
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "frontend/mpi/errors.hpp"
#include "frontend/shared_pointer/group.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

// Which split collective is under way; its _end must be of the same kind.
enum class Split : uint8_t { none, read_all, write_all, read_at_all, write_at_all, read_ordered, write_ordered };
enum class Direction : uint8_t { read, write };

class MpiFile : public RecordHost, public std::enable_shared_from_this<MpiFile> {
 public:
  MPI_File handle = MPI_FILE_NULL;  // what the program holds
  std::string path;                 // absolute
  std::string filename;             // as the program gave it
  int amode = 0;                    // as the program gave it
  uint64_t number = 0;              // in order of opening
  Settings settings;
  int rank = 0, ranks = 1;
  std::shared_ptr<PointerGroup> pointer_group;  // null: one process
  SharedAccess shared;
  bool views_differ = false;  // between ranks: then there is no shared pointer
  Split split = Split::none;
  uint64_t split_bytes = 0;
  std::atomic<bool> complained{false};
  std::string version_read;  // of a checkpoint that ranks read together: its id
  std::atomic<bool> unread{false};

  bool writes() const { return (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0; }
  bool reads() const { return (amode & MPI_MODE_WRONLY) == 0; }
  bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }
  virtual bool is_protected() const = 0;

  // Before any other call on the file: records that wait in logs get their places. Collective where `together`.
  Fault before_call(bool together);
  // Why the shared pointer does not answer.
  Fault lost_pointer() const;

  // Calls that files of both kinds serve: each answers, and has reported, as MPI's of its name does.
  virtual int set_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) = 0;
  virtual int set_atomicity(int flag) = 0;
  virtual int get_info(MPI_Info* used) = 0;
  virtual int seek_shared(MPI_Offset offset, int whence) = 0;
  virtual int access_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) = 0;
  virtual int start_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Request* request) = 0;
  virtual int access_ordered(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status, uint64_t& bytes) = 0;
  virtual int close(MPI_File* fh) = 0;

  // RecordHost
  SharedPointer& pointer() override { return *shared.pointer; }
};

// No lock: a file is used by nobody while it is opened or closed.
MpiFile* find_any(MPI_File fh);
// False: there are too many. The table shares the file until it is forgotten.
bool remember(const std::shared_ptr<MpiFile>& file);
void forget(MPI_File fh);
std::vector<std::shared_ptr<MpiFile>> open_files();  // in order of opening

// Calls the file's error handler (the program's code: it may call MPI again) and returns the code. The sentence goes
// to stderr once per file.
int report(MpiFile& file, const Fault& fault);

// Runs `call(MpiFile&)` -> code for the file behind `fh`.
template <class Call>
int with_any(MPI_File fh, Call call) {
  MpiFile* file = find_any(fh);
  return file ? call(*file) : report(Fault(MPI_ERR_FILE));
}

// The end of a split collective, whatever file it is of.
int end_split(MPI_File fh, Split kind, MPI_Status* status);

// What a call on the shared pointer gets where the ranks' views differ.
Fault different_views(bool speak);
// What any but its _end gets while a split collective is under way.
Fault split_under_way(const char* what);

}  // namespace holdfast::frontend
