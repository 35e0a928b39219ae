// A file that is not protected: MPI's own in everything but the shared pointer. Our pointer gives the place. MPI's access with an explicit offset
// moves the data, or a system call on MPI's own descriptor where the view and the file system are plain.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "frontend/mpi/descriptor.hpp"
#include "frontend/mpi/local_checkpoint.hpp"
#include "frontend/mpi/mpi_file.hpp"
#include "frontend/mpi/view.hpp"

namespace holdfast::frontend {

// What is known of a file's present view: asked of MPI when the first access through the shared pointer needs it.
struct NativeView {
  View view;
  int64_t etype_bytes = 0;   // in memory: what counts of data are divided by
  int64_t first_byte = -1;   // of the file, where the view is plain bytes from there on; else -1
  uint64_t fingerprint = 0;  // of etype, filetype, displacement and representation
  bool loggable = false;     // data lies in the file as it is given, and need not be there at once
  bool direct = false;       // by system calls: plain bytes, not atomic, and a descriptor is there
};

// The handle has no MPI_MODE_SEQUENTIAL, whatever the program gave.
class PlainMpiFile final : public MpiFile {
 public:
  MPI_Comm comm = MPI_COMM_NULL;  // for collective calls about the pointer; null: one process
  bool own_comm = false;

  Descriptor descriptor;                        // once the first access has looked for it
  std::unique_ptr<LocalCheckpoint> checkpoint;  // null: it is none
  std::atomic<bool> moved{false};               // the pointer, by this rank, since the view was set

  ~PlainMpiFile() override;  // collective

  bool is_protected() const override { return false; }
  int set_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) override;
  int set_atomicity(int flag) override;
  int get_info(MPI_Info* used) override;
  int seek_shared(MPI_Offset offset, int whence) override;
  int access_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) override;
  int start_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Request* request) override;
  int access_ordered(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status, uint64_t& bytes) override;
  int close(MPI_File* fh) override;

  // The present view; null where MPI does not say.
  NativeView* view() {
    NativeView* known = view_.load(std::memory_order_acquire);
    return known ? known : learn_view();
  }
  void forget_view();
  // Of the file, as position in etypes of the view. -1 where MPI cannot tell.
  int64_t end_in_etypes();
  // Data of the view from a position to the file's end, in bytes of memory; 0 beyond it, -1 as above.
  int64_t bytes_from(int64_t etypes);

  // RecordHost
  int64_t etype_bytes() override;
  Status place(int64_t etypes, ByteView packed) override;
  bool describe(layout::SessionView& view) override;
  Status make_durable() override;

 private:
  NativeView* learn_view();
  bool looked_for_descriptor_ = false;
  std::mutex mutex_;
  std::atomic<NativeView*> view_{nullptr};
};

// All ranks get a fault where one has one.
struct Agreed {
  Fault fault;
  std::vector<int64_t> most;  // elementwise maximum of `numbers`
};
Agreed agree(PlainMpiFile& file, const Fault& mine, std::vector<int64_t> numbers = {});

// What MPI_File_open has decided about a file's shared pointer; see open.cpp.
struct PointerPlan {
  std::shared_ptr<PointerGroup> group;  // found, not made yet
  int64_t slot = -1;
  bool keep = false;
};
// Collective. The pointer, and the group where it has one.
void attach_pointer(MPI_Comm comm, PointerPlan& plan, const Settings& settings, SharedAccess& access);
// Collective: the logs that the settings ask for, see shared_pointer/logged.hpp.
struct RecordPlan;
void attach_records(MPI_Comm comm, RecordPlan plan, RecordHost& host, SharedAccess& access);
// MPI's own open, of a file under no policy. What it opens by plain calls is its own matter, whatever the globs for plain files say.
int open_by_mpi(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh);
// What MPI_File_open was given, and what has been made of it: `path` of the name, `settings` of hints and environment.
struct NativeOpen {
  MPI_Comm comm;
  const char* filename;
  int amode;
  MPI_Info info;
  const std::string& path;
  const Settings& settings;
};
int open_native(const NativeOpen& open, PointerPlan& plan, MPI_File* fh, std::unique_ptr<LocalCheckpoint> checkpoint = {});

}  // namespace holdfast::frontend
