// Files that are not protected: opening and closing, views, and where the shared pointer stands.
#include <cstring>

#include "exchange/mpi/mpi_exchange.hpp"
#include "frontend/mpi/job_log.hpp"
#include "frontend/mpi/native.hpp"
#include "frontend/shared_pointer/alone.hpp"

#include "frontend/shared_pointer/logged.hpp"
#include "frontend/shared_pointer/process.hpp"
#include "intercept/mpi/depth.hpp"
#include "intercept/posix/depth.hpp"
#include "owned_mpi.h"
#include "profile/record.hpp"

namespace holdfast::frontend {

namespace {

std::unique_ptr<SharedPointer> served_pointer(PointerGroup& group, const Settings& settings, bool as_thread, SharedAccess& access) {
  using Reach = service::PointerService::Reach;
  ServiceWish wish;
  wish.reach = group.shares_memory() ? Reach::node : fake_nodes() == FakeNodes::no ? Reach::network : Reach::loopback;
  wish.as_thread = as_thread;
  wish.deadline_ms = settings.deadline_ms;
  if (as_thread) wish.alive = &group.kept_alive();
  return make_process_pointer(group.comm(), wish, access.takeover);
}

// The window where it works without anybody's help, else the server; and the other way round where that is asked for.
std::unique_ptr<SharedPointer> chosen_pointer(PointerPlan& plan, const Settings& settings, SharedAccess& access) {
  PointerGroup& group = *plan.group;
  const bool window_works = group.shares_memory() || group.makes_progress();
  const bool asked_for_process = access.asked == "process";
  if (asked_for_process || !window_works) {
    auto served = served_pointer(group, settings, !asked_for_process, access);
    if (served) {
      group.give_back(plan.slot);
      if (!asked_for_process) access.takeover = "this MPI has no one-sided operations between these nodes that need no help of their target";
      return served;
    }
  }
  auto pointer = group.attach(plan.slot);
  return pointer ? std::move(pointer) : std::make_unique<NoPointer>();
}

}  // namespace

void attach_pointer(MPI_Comm comm, PointerPlan& plan, const Settings& settings, SharedAccess& access) {
  access.asked = settings.shared_pointer;
  int ranks = 1;
  real.Comm_size(comm, &ranks);
  if (ranks == 1) {
    access.pointer = std::make_unique<AlonePointer>();
    return;
  }
  if (!plan.group) {
    plan.group = PointerGroup::make(comm, plan.keep);
    int64_t slot = plan.group->rank() == 0 ? plan.group->claim_slot() : 0;
    real.Bcast(&slot, 1, MPI_INT64_T, 0, plan.group->comm());
    plan.slot = slot;
  }
  plan.group->file_opened();
  access.pointer = chosen_pointer(plan, settings, access);
}

namespace {

bool threads_are_multiple() {
  int provided = MPI_THREAD_SINGLE;
  real.Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

// Collective. Where threads may use several files at once each file needs a communicator of its own.
void attach(MPI_Comm comm, PointerPlan& plan, NativeFile& file) {
  attach_pointer(comm, plan, file.settings, file.shared);
  real.Comm_rank(comm, &file.rank);
  real.Comm_size(comm, &file.ranks);
  file.group = plan.group;
  if (file.ranks == 1) return;
  file.comm = plan.group->comm();
  file.own_comm = threads_are_multiple();
  if (file.own_comm) real.Comm_dup(plan.group->comm(), &file.comm);
}

// Everybody has come here, and leaves when rank 0 has moved the pointer.
Fault move_pointer(NativeFile& file, int64_t to) {
  Fault fault;
  if (file.rank == 0 && !file.shared.pointer->store(to)) fault = file.shared.pointer->failure();
  if (file.comm == MPI_COMM_NULL) return fault;
  int64_t code = fault.code;
  real.Bcast(&code, 1, MPI_INT64_T, 0, file.comm);
  return file.rank == 0 ? fault : Fault(static_cast<int>(code));
}

// What can be said of a view without laying its datatypes flat; programs that never use the shared pointer pay only this.
int64_t outline_of(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep) {
  MPI_Count numbers[8] = {disp};
  real.Type_size_x(etype, &numbers[1]);
  real.Type_size_x(filetype, &numbers[2]);
  real.Type_get_extent_x(filetype, &numbers[3], &numbers[4]);
  real.Type_get_true_extent_x(filetype, &numbers[5], &numbers[6]);
  uint64_t hash = 14695981039346656037ull;
  for (MPI_Count number : numbers) hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211ull;
  for (const char* c = datarep; *c; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211ull;
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace

bool wants_records(const Settings& settings) { return settings.shared_pointer == "individual" || settings.shared_pointer == "single"; }

void attach_records(MPI_Comm comm, RecordPlan plan, RecordHost& host, SharedAccess& access) {
  if (!wants_records(plan.settings)) return;
  MPI_Comm own = MPI_COMM_NULL;
  real.Comm_dup(comm, &own);
  plan.exchange = exchange::make_mpi(own);
  access.records = open_records(std::move(plan), host, access.takeover);
}

int open_by_mpi(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  const intercept::posix::OurCode passes;
  return next_mpi.File_open(comm, filename, amode, info, fh);
}

int open_native(MPI_Comm comm, const char* filename, const std::string& path, int amode, MPI_Info info, const Settings& settings, PointerPlan& plan,
                MPI_File* fh) {
  auto file = std::make_unique<NativeFile>();
  file->path = path;
  file->amode = amode;
  file->settings = settings;
  attach(comm, plan, *file);
  // Access by offsets is refused in a sequential file, and is what our pointer is made of: we do the refusing ourselves.
  const bool allowed = (amode & MPI_MODE_RDWR) == 0;  // together with it: MPI's to refuse
  const int code = open_by_mpi(comm, filename, allowed ? amode & ~MPI_MODE_SEQUENTIAL : amode, info, fh);
  if (code != MPI_SUCCESS) return code;
  file->handle = *fh;
  if (file->writes())
    attach_records(comm, {path, settings, nullptr, nullptr, (amode & MPI_MODE_DELETE_ON_CLOSE) != 0, file->reads()}, *file, file->shared);
  if (amode & MPI_MODE_APPEND) {
    MPI_Offset size = 0;
    if (file->rank == 0) real.File_get_size(*fh, &size);
    (void)move_pointer(*file, size);
    file->moved.store(true);
  }
  if (remember_native(*fh, file.get())) (void)file.release();
  return MPI_SUCCESS;
}

int native_close(NativeFile* known, MPI_File* fh) {
  std::unique_ptr<NativeFile> file(known);
  if (file->split != Split::none) {
    return report(*file.release(), Fault(MPI_ERR_IO, "a split collective operation is under way; end it before closing the file"));
  }
  int code = MPI_SUCCESS;
  if (file->shared.records) code = report(*file, file->shared.records->at_close(*file));
  if (profile::opening_record) profile::describe_pointer(*profile::opening_record, file->shared.serving());
  if (file->rank == 0) log_shared_pointer(file->path, file->ranks, file->settings, file->shared);
  forget_native(*fh);
  file->descriptor = Descriptor();
  int closed = MPI_SUCCESS;
  {
    intercept::ProgramCode program;
    closed = next_mpi.File_close(fh);
  }
  if (file->shared.records) {
    if (const Fault kept = file->shared.records->after_close(); !kept.ok() && code == MPI_SUCCESS) code = report(kept);
  }
  return code != MPI_SUCCESS ? code : closed;
}

int native_set_view(NativeFile& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  if (file.shared.records) {
    if (const Status status = file.shared.records->at_collective(file); !status.ok()) return report(file, status);
  }
  if (disp == MPI_DISPLACEMENT_CURRENT && file.sequential()) {
    const Agreed here = agree(file, Fault());  // the pointer stands still
    const int64_t at = file.shared.pointer->load();
    if (!here.fault.ok() || at < 0) return report(file, at < 0 ? Fault(file.shared.pointer->failure()) : here.fault);
    real.File_get_byte_offset(file.handle, at, &disp);
  }
  int code = MPI_SUCCESS;
  {
    intercept::ProgramCode program;
    code = next_mpi.File_set_view(file.handle, disp, etype, filetype, datarep, info);
  }
  if (code != MPI_SUCCESS && file.comm == MPI_COMM_NULL) return code;
  const int64_t outline = code == MPI_SUCCESS ? outline_of(disp, etype, filetype, datarep) : 0;
  file.forget_view();
  // One small collective call; another one only where somebody has moved the pointer. All have come here before any goes on.
  const bool refused = code != MPI_SUCCESS;
  const Agreed all = agree(file, Fault(), {outline, -outline, file.moved.load(), refused, !refused});
  if (all.most[4] == 0) return code;  // by all: the view is what it was
  file.views_differ = all.most[0] != -all.most[1] || all.most[3] != 0;
  // Only a call on the shared pointer says that there is none any more.
  if (all.most[2] != 0) (void)move_pointer(file, 0);
  file.moved.store(false);
  return code;
}

int native_set_atomicity(NativeFile& file, int flag) {
  if (file.shared.records) {
    if (const Status status = file.shared.records->at_collective(file); !status.ok()) return report(file, status);
  }
  file.forget_view();  // which says whether system calls will do
  intercept::ProgramCode program;
  return next_mpi.File_set_atomicity(file.handle, flag);
}

int native_seek_shared(NativeFile& file, MPI_Offset offset, int whence) {
  if (file.sequential()) return report(file, Fault(MPI_ERR_UNSUPPORTED_OPERATION));
  if (file.shared.records) {
    if (const Status status = file.shared.records->at_collective(file); !status.ok()) return report(file, status);
  }
  Fault fault;
  if (file.split != Split::none) fault = Fault(MPI_ERR_IO, "a split collective operation is under way; end it first");
  if (whence != MPI_SEEK_SET && whence != MPI_SEEK_CUR && whence != MPI_SEEK_END) fault = Fault(MPI_ERR_ARG);
  if (file.views_differ) fault = different_views(file.rank == 0);
  NativeView* view = file.view();
  const int64_t print = view ? static_cast<int64_t>(view->fingerprint >> 1) : 0;
  const Agreed all = agree(file, fault, {offset, -offset, whence, -whence, print, -print});
  if (!all.fault.ok()) return report(file, all.fault);
  for (size_t i = 0; i < all.most.size(); i += 2) {
    if (all.most[i] != -all.most[i + 1]) return report(file, Fault(MPI_ERR_NOT_SAME));
  }
  // Everybody is here, so pointer and size stand still until rank 0 has moved the pointer.
  int64_t target = 0;
  if (file.rank == 0) {
    const int64_t from = whence == MPI_SEEK_SET ? 0 : whence == MPI_SEEK_CUR ? file.shared.pointer->load() : file.end_in_etypes();
    if (from < 0) fault = whence == MPI_SEEK_CUR ? Fault(file.shared.pointer->failure()) : Fault(MPI_ERR_IO, "MPI does not tell the file's size");
    if (__builtin_add_overflow(from, offset, &target)) fault = Fault(MPI_ERR_ARG);
  }
  int64_t told[] = {fault.code, target};
  if (file.comm != MPI_COMM_NULL) real.Bcast(told, 2, MPI_INT64_T, 0, file.comm);
  if (told[0] != MPI_SUCCESS) return report(file, file.rank == 0 ? fault : Fault(static_cast<int>(told[0])));
  target = told[1];
  if (target < 0 || (view && view->view.file && !view->view.reaches(target))) return report(file, Fault(MPI_ERR_ARG));
  file.moved.store(true);
  return report(file, move_pointer(file, target));
}

int native_get_position_shared(NativeFile& file, MPI_Offset* offset) {
  if (file.sequential()) return report(file, Fault(MPI_ERR_UNSUPPORTED_OPERATION));
  if (file.shared.records) {
    if (const Status status = file.shared.records->before_independent(file); !status.ok()) return report(file, status);
  }
  const int64_t at = file.shared.pointer->load();
  if (at < 0) return report(file, file.shared.pointer->failure());
  *offset = at;
  return MPI_SUCCESS;
}

int native_get_info(NativeFile& file, MPI_Info* info) {
  int code = MPI_SUCCESS;
  {
    intercept::ProgramCode program;
    code = next_mpi.File_get_info(file.handle, info);
  }
  if (code != MPI_SUCCESS) return code;
  if (*info == MPI_INFO_NULL) real.Info_create(info);
  real.Info_set(*info, "holdfast_shared_pointer", file.shared.serving());
  return MPI_SUCCESS;
}

}  // namespace holdfast::frontend
