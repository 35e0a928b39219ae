// Files that are not protected: opening and closing, views, and where the shared pointer stands.
#include <cstring>

#include "exchange/mpi/mpi_exchange.hpp"
#include "frontend/mpi/job_log.hpp"
#include "frontend/mpi/native.hpp"
#include "frontend/shared_pointer/alone.hpp"

#include "frontend/mpi/own_code.hpp"
#include "frontend/posix/own_code.hpp"
#include "frontend/shared_pointer/logged.hpp"
#include "frontend/shared_pointer/process.hpp"
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
void attach(MPI_Comm comm, PointerPlan& plan, PlainMpiFile& file) {
  attach_pointer(comm, plan, file.settings, file.shared);
  real.Comm_rank(comm, &file.rank);
  real.Comm_size(comm, &file.ranks);
  file.pointer_group = plan.group;
  if (file.ranks == 1) return;
  file.comm = plan.group->comm();
  file.own_comm = threads_are_multiple();
  if (file.own_comm) real.Comm_dup(plan.group->comm(), &file.comm);
}

// Everybody has come here, and leaves when rank 0 has moved the pointer.
Fault move_pointer(PlainMpiFile& file, int64_t to) {
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
  const posix::OurCode passes;
  return next_mpi.File_open(comm, filename, amode, info, fh);
}

int open_native(const NativeOpen& open, PointerPlan& plan, MPI_File* fh, std::unique_ptr<LocalCheckpoint> checkpoint) {
  const auto& [comm, filename, amode, info, path, settings] = open;
  auto file = std::make_shared<PlainMpiFile>();
  file->path = path;
  file->amode = amode;
  file->settings = settings;
  file->checkpoint = std::move(checkpoint);
  attach(comm, plan, *file);
  // Access by offsets is refused in a sequential file, and is what our pointer is made of: we do the refusing ourselves.
  const bool allowed = (amode & MPI_MODE_RDWR) == 0;  // together with it: MPI's to refuse
  int mpi_amode = allowed ? amode & ~MPI_MODE_SEQUENTIAL : amode;
  if (file->checkpoint) mpi_amode = file->checkpoint->amode_for_mpi(mpi_amode);
  const int code = open_by_mpi(comm, file->checkpoint ? file->checkpoint->name().c_str() : filename, mpi_amode, info, fh);
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
  (void)remember(file);  // else the shared pointer is MPI's own, too
  return MPI_SUCCESS;
}

int PlainMpiFile::close(MPI_File* fh) {
  const auto stays = shared_from_this();
  int code = MPI_SUCCESS;
  if (shared.records) code = report(*this, shared.records->at_close(*this));
  if (profile::opening_record) profile::describe_pointer(*profile::opening_record, shared.serving());
  if (rank == 0) log_shared_pointer(path, ranks, settings, shared);
  forget(*fh);
  descriptor = Descriptor();
  int closed = MPI_SUCCESS;
  {
    holdfast::frontend::ProgramCode program;
    closed = next_mpi.File_close(fh);
  }
  if (checkpoint) {
    const Fault kept(checkpoint->close((amode & MPI_MODE_DELETE_ON_CLOSE) != 0));
    if (!kept.ok() && code == MPI_SUCCESS) code = report(kept);
  }
  if (shared.records) {
    if (const Fault kept = shared.records->after_close(); !kept.ok() && code == MPI_SUCCESS) code = report(kept);
  }
  return code != MPI_SUCCESS ? code : closed;
}

int PlainMpiFile::set_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  if (const Fault fault = before_call(true); !fault.ok()) return report(*this, fault);
  if (disp == MPI_DISPLACEMENT_CURRENT && sequential()) {
    const Agreed here = agree(*this, Fault());  // the pointer stands still
    const int64_t at = shared.pointer->load();
    if (!here.fault.ok() || at < 0) return report(*this, at < 0 ? lost_pointer() : here.fault);
    real.File_get_byte_offset(handle, at, &disp);
  }
  int code = MPI_SUCCESS;
  {
    holdfast::frontend::ProgramCode program;
    code = next_mpi.File_set_view(handle, disp, etype, filetype, datarep, info);
  }
  if (code != MPI_SUCCESS && comm == MPI_COMM_NULL) return code;
  const int64_t outline = code == MPI_SUCCESS ? outline_of(disp, etype, filetype, datarep) : 0;
  forget_view();
  // One small collective call; another one only where somebody has moved the pointer. All have come here before any goes on.
  const bool refused = code != MPI_SUCCESS;
  const Agreed all = agree(*this, Fault(), {outline, -outline, moved.load(), refused, !refused});
  if (all.most[4] == 0) return code;  // by all: the view is what it was
  views_differ = all.most[0] != -all.most[1] || all.most[3] != 0;
  // Only a call on the shared pointer says that there is none any more.
  if (all.most[2] != 0) (void)move_pointer(*this, 0);
  moved.store(false);
  return code;
}

int PlainMpiFile::set_atomicity(int flag) {
  if (const Fault fault = before_call(true); !fault.ok()) return report(*this, fault);
  forget_view();  // which says whether system calls will do
  holdfast::frontend::ProgramCode program;
  return next_mpi.File_set_atomicity(handle, flag);
}

int PlainMpiFile::seek_shared(MPI_Offset offset, int whence) {
  if (sequential()) return report(*this, Fault(MPI_ERR_UNSUPPORTED_OPERATION));
  if (const Fault fault = before_call(true); !fault.ok()) return report(*this, fault);
  Fault fault;
  if (split != Split::none) fault = split_under_way("this call");
  if (whence != MPI_SEEK_SET && whence != MPI_SEEK_CUR && whence != MPI_SEEK_END) fault = Fault(MPI_ERR_ARG);
  if (views_differ) fault = different_views(rank == 0);
  NativeView* now = view();
  const int64_t print = now ? static_cast<int64_t>(now->fingerprint >> 1) : 0;
  const Agreed all = agree(*this, fault, {offset, -offset, whence, -whence, print, -print});
  if (!all.fault.ok()) return report(*this, all.fault);
  for (size_t i = 0; i < all.most.size(); i += 2) {
    if (all.most[i] != -all.most[i + 1]) return report(*this, Fault(MPI_ERR_NOT_SAME));
  }
  // Everybody is here, so pointer and size stand still until rank 0 has moved the pointer.
  int64_t target = 0;
  if (rank == 0) {
    const int64_t from = whence == MPI_SEEK_SET ? 0 : whence == MPI_SEEK_CUR ? shared.pointer->load() : end_in_etypes();
    if (from < 0) fault = whence == MPI_SEEK_CUR ? lost_pointer() : Fault(MPI_ERR_IO, "MPI does not tell the file's size");
    if (__builtin_add_overflow(from, offset, &target)) fault = Fault(MPI_ERR_ARG);
  }
  int64_t told[] = {fault.code, target};
  if (comm != MPI_COMM_NULL) real.Bcast(told, 2, MPI_INT64_T, 0, comm);
  if (told[0] != MPI_SUCCESS) return report(*this, rank == 0 ? fault : Fault(static_cast<int>(told[0])));
  target = told[1];
  if (target < 0 || (now && now->view.file && !now->view.reaches(target))) return report(*this, Fault(MPI_ERR_ARG));
  moved.store(true);
  return report(*this, move_pointer(*this, target));
}

int PlainMpiFile::get_info(MPI_Info* used) {
  int code = MPI_SUCCESS;
  {
    holdfast::frontend::ProgramCode program;
    code = next_mpi.File_get_info(handle, used);
  }
  if (code != MPI_SUCCESS) return code;
  if (*used == MPI_INFO_NULL) real.Info_create(used);
  real.Info_set(*used, "holdfast_shared_pointer", shared.serving());
  return MPI_SUCCESS;
}

}  // namespace holdfast::frontend
