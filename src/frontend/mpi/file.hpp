// One open protected file as this process sees it, and the table from the program's handles to them.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/config.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/mpi/errors.hpp"
#include "frontend/mpi/view.hpp"
#include "frontend/shared_pointer/group.hpp"
#include "real_mpi.h"
#include "tree/settings.hpp"

namespace holdfast::frontend {

// Which split collective is under way; its _end must be of the same kind.
enum class Split : uint8_t { none, read_all, write_all, read_at_all, write_at_all, read_ordered, write_ordered };

class File : public RecordHost {
 public:
  ~File() override;  // collective where the file is shared

  MPI_File carrier = MPI_FILE_NULL;  // what the program holds: /dev/null, opened by MPI itself
  MPI_Group group = MPI_GROUP_NULL;
  std::string path;  // absolute
  int amode = 0;
  uint64_t number = 0;  // in order of opening
  Settings settings;
  std::map<std::string, std::string> hints;  // in force
  bool atomic = false;
  std::atomic<bool> complained{false};

  // In this order: the stack goes before the exchange that it uses.
  std::unique_ptr<exchange::Exchange> exchange;
  std::shared_ptr<PointerGroup> pointer_group;  // null: one process
  SharedAccess shared;
  std::unique_ptr<engine::ProtectedFile> stack;

  std::mutex mutex;  // over the view, the position and the split collective
  View view;
  int64_t position = 0;       // individual pointer, in etypes
  bool views_differ = false;  // between ranks: then there is no shared pointer
  Split split = Split::none;
  uint64_t split_bytes = 0;

  std::atomic<bool> written_through_pointer{false};  // by this process, since all ranks could last read it
  std::atomic<int> outstanding{0};                   // nonblocking operations that are not done

  // RecordHost
  SharedPointer& pointer() override { return *shared.pointer; }
  int64_t etype_bytes() override { return static_cast<int64_t>(view.etype_bytes); }
  Status place(int64_t etypes, ByteView packed) override;
  bool describe(layout::SessionView& into) override { return !atomic && !view.external && describe_view(view, into); }
  bool fit_for_log() const { return !atomic && !view.external; }
  // Before any other call on the file: records that wait in logs get their places. Collective where `together`.
  Fault before_call(bool together);
  // Collective, where the shared pointer may go back: what any rank has written through it is there for all ranks to read. MPI asks for a
  // sync in between, but programs go without one on file systems where writes are seen at once.
  Fault show_written();

  void release_pointer();  // collective where the file is shared
  bool writes() const { return (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0; }
  bool reads() const { return (amode & MPI_MODE_WRONLY) == 0; }
  bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }
};

using FilePtr = std::shared_ptr<File>;

void remember_file(const FilePtr& file);
FilePtr find_file(MPI_File fh);
void forget_file(MPI_File fh);
std::vector<FilePtr> open_files();  // in order of opening

// Runs `call(File&)` -> Fault for the file behind `fh` and reports what it says.
template <class Call>
int with_file(MPI_File fh, Call call) {
  FilePtr file = find_file(fh);
  if (!file) return report(Fault(MPI_ERR_FILE));
  return report(*file, call(*file));
}

// All ranks get a fault where one has one: its own, or one of the same code. Only the first keeps its sentence.
Fault agree(exchange::Exchange& exchange, const Fault& mine);
// A Status that all ranks have got from a collective call: only one says so.
Fault told_once(const File& file, const Status& status);

// Closes one file whatever happens to it on the way; collective. The handle is not valid afterwards.
Fault close_file(const FilePtr& file);

// What a call on the shared pointer gets where the ranks' views differ.
Fault different_views(bool speak);

using tree::process_settings;
Status apply_hints(MPI_Info info, Settings& settings);

// The absolute path behind what programs pass: relative to the working directory, with ROMIO's "ufs:" before it.
std::string absolute_path(const char* filename);

}  // namespace holdfast::frontend
