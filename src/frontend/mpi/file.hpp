// One open protected file as this process sees it: all calls on it are served here. In a redundant job plain files are served so, too.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/mpi/mpi_file.hpp"
#include "frontend/mpi/shared_checkpoint.hpp"
#include "frontend/mpi/view.hpp"
#include "tree/settings.hpp"

namespace holdfast::frontend {

// Its handle is /dev/null, opened by MPI itself.
class ProtectedMpiFile final : public MpiFile {
 public:
  ~ProtectedMpiFile() override;  // collective where the file is shared

  MPI_Group group = MPI_GROUP_NULL;
  std::map<std::string, std::string> hints;  // in force
  bool atomic = false;

  // In this order: the stack goes before the exchange that it uses.
  std::unique_ptr<exchange::Exchange> exchange;
  std::unique_ptr<CollectiveFile> stack;
  engine::ProtectedFile* protected_file = nullptr;  // the stack, where it is one
  std::unique_ptr<WrittenCheckpoint> checkpoint;    // null: it is none

  std::mutex mutex;  // over the view, the position and the split collective
  View view;
  int64_t position = 0;  // individual pointer, in etypes

  std::atomic<bool> written_through_pointer{false};  // by this process, since all ranks could last read it
  std::atomic<int> outstanding{0};                   // nonblocking operations that are not done

  // RecordHost
  int64_t etype_bytes() override { return static_cast<int64_t>(view.etype_bytes); }
  Status place(int64_t etypes, ByteView packed) override;
  bool describe(layout::SessionView& into) override { return !atomic && !view.external && describe_view(view, into); }
  bool fit_for_log() const { return !atomic && !view.external; }
  // Collective, where the shared pointer may go back: what any rank has written through it is there for all ranks to read. MPI asks for a
  // sync in between, but programs go without one on file systems where writes are seen at once.
  Fault show_written();

  void release_pointer();  // collective where the file is shared
  bool is_protected() const override { return true; }
  int set_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) override;
  int set_atomicity(int flag) override;
  int get_info(MPI_Info* used) override;
  int seek_shared(MPI_Offset offset, int whence) override;
  int access_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) override;
  int start_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Request* request) override;
  int access_ordered(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status, uint64_t& bytes) override;
  int close(MPI_File* fh) override;
  // The same, whatever happens to it on the way; collective. The handle is not valid afterwards.
  Fault close_whole();

 private:
  Fault take_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info);
  Fault take_atomicity(int flag);
  Fault seek_together(MPI_Offset offset, int whence);
};

using FilePtr = std::shared_ptr<ProtectedMpiFile>;

FilePtr find_file(MPI_File fh);

// Runs `call(ProtectedMpiFile&)` -> Fault for the file behind `fh` and reports what it says.
template <class Call>
int with_file(MPI_File fh, Call call) {
  FilePtr file = find_file(fh);
  if (!file) return report(Fault(MPI_ERR_FILE));
  return report(static_cast<MpiFile&>(*file), call(*file));
}

// All ranks get a fault where one has one: its own, or one of the same code. Only the first keeps its sentence.
Fault agree(exchange::Exchange& exchange, const Fault& mine);
// A Status that all ranks have got from a collective call: only one says so.
Fault told_once(const ProtectedMpiFile& file, const Status& status);

using tree::process_settings;
Status apply_hints(MPI_Info info, Settings& settings);

// The absolute path behind what programs pass: relative to the working directory, with ROMIO's "ufs:" before it.
std::string path_of_filename(const char* filename);

}  // namespace holdfast::frontend
