// MPI_File_open: one rank decides, all agree. A file without a policy is MPI's own in all but its shared pointer, and pays one
// small collective call.
#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "exchange/mpi/mpi_exchange.hpp"
#include "file/coordinated/coordinated.hpp"
#include "file/coordinated/together.hpp"
#include "file/open_as_replica.hpp"
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/first_write.hpp"
#include "frontend/mpi/local_checkpoint.hpp"
#include "frontend/mpi/native.hpp"
#include "frontend/mpi/policy.hpp"
#include "frontend/shared_pointer/decided.hpp"
#include "frontend/shared_pointer/logged.hpp"
#include "owned_mpi.h"
#include "profile/record.hpp"
#include "redundant/subjects.hpp"
#include "target/lock_owner.hpp"

namespace holdfast::frontend {

namespace {

// What rank 0 tells the others. The path and the settings follow where the file is protected.
struct Verdict {
  tree::Way way = tree::Way::as_without;
  int code = MPI_SUCCESS;
  int amode = 0;
  int text_bytes = 0;
  int64_t slot = -1;               // of the shared pointer, where the ranks have a group already
  bool pointers_differ = false;    // the ranks want different algorithms for it
  bool keep_group = false;         // all have room for another
  bool aggregators_agreed = true;  // all ask for the same number of them outside the program
  bool checkpoint = false;         // it is one, on the node's own disk, or one that ranks write together
  bool together = false;
};

// All that must be the same on all ranks, as text: the path and what the settings say.
std::string fingerprint(const std::string& path, const Settings& settings) {
  std::string text = path;
  text += '\0';
  for (const auto& [key, value] : settings.environment()) text += key + "=" + value + "\n";
  return text;
}

uint32_t file_mode() { return 0666 & ~target::umask_of_this_process(); }

class Opener {
 public:
  Opener(MPI_Comm comm, const char* filename, int amode, MPI_Info info)
      : comm_(comm), filename_(filename), path_(path_of_filename(filename)), amode_(amode), info_(info) {
    real.Comm_rank(comm, &rank_);
  }

  int run(MPI_File* fh) {
    *fh = MPI_FILE_NULL;
    Fault mine = read_settings();
    const Verdict verdict = decide_together(mine);
    plan_.slot = verdict.slot;
    plan_.keep = verdict.keep_group;
    if (verdict.pointers_differ && verdict.way != tree::Way::refuse) {
      return_slot();
      return report(
          Fault(MPI_ERR_NOT_SAME,
                rank_ == 0 ? path_ + ": the ranks give different values of holdfast_shared_pointer, holdfast_ordered or holdfast_merge" : ""));
    }
    if (verdict.checkpoint && !verdict.together) return open_checkpoint(mine, verdict.aggregators_agreed, fh);
    if (verdict.way == tree::Way::as_without && !verdict.together && !redundant::Replica::now()) {
      const bool native_pointer = settings_.shared_pointer == "native";
      if (native_pointer) return_slot();
      const NativeHints hints(comm_, info_, path_, verdict.aggregators_agreed);
      return native_pointer ? open_by_mpi(comm_, filename_, amode_, hints.info(), fh)
                            : open_native({comm_, filename_, amode_, hints.info(), path_, settings_}, plan_, fh);
    }
    if (verdict.way == tree::Way::refuse) {
      return_slot();
      return report(rank_ == 0 ? mine : Fault(verdict.code));
    }
    if (rank_ == 0 && verdict.way == tree::Way::make) say_once_of_hints(path_, settings_);
    FilePtr file = std::make_shared<ProtectedMpiFile>();
    const bool plain = verdict.way == tree::Way::as_without;
    Fault fault = verdict.together ? open_together(verdict, mine, *file)
                  : plain          ? open_plain_as_replica(verdict, mine, *file)
                                   : open_protected(verdict, mine, *file);
    if (!fault.ok()) {
      if (!file->shared.pointer) return_slot();
      return report(fault);
    }
    *fh = file->handle;
    return MPI_SUCCESS;
  }

 private:
  Fault read_settings() {
    if (!process_settings()) return process_settings().status();
    settings_ = *process_settings();
    HF_FAULT(apply_hints(info_, settings_));
    const auto nodes = int(std::min<size_t>(settings_.local.size(), layout::max_pool_members));
    settings_.fit_layout_hints(nodes > 0 ? nodes : int(settings_.targets.size()));
    spread_over_nodes(nodes);
    return Fault();
  }

  // The rows of a file that several ranks share go round the nodes of the pool: as many nodes give as many times the bandwidth. As many as may be
  // lost stay free, for a repair to put the lost ones' parts there. Whole copies, as mirrors have them elsewhere, would go round nothing.
  void spread_over_nodes(int nodes) {
    int ranks = 1;
    real.Comm_size(comm_, &ranks);
    const auto scheme = layout::Scheme::parse(settings_.protect.value_or(""));
    if (ranks == 1 || !scheme || nodes <= scheme->width() || settings_.striping_factor.value_or(0) > 0) return;
    settings_.striping_factor = std::max(nodes - scheme->m, scheme->width());
    if (!settings_.placement) settings_.placement = layout::placement_name(layout::Placement::interleaved);
  }

  // What must be the same on all ranks for a shared pointer.
  int64_t pointer_print(const Fault& mine) const {
    if (!mine.ok()) return 1;  // whatever it was: not what the others said
    return static_cast<int64_t>(
        std::hash<std::string>()(settings_.shared_pointer + (settings_.ordered_by_scan ? "+" : "-") + (settings_.merge_later ? "+" : "-")) >> 1);
  }

  // Rank 0's word and the comparison in one call.
  Verdict decide_together(Fault& mine) {
    real.Comm_size(comm_, &ranks_);
    if (ranks_ > 1) plan_.group = PointerGroup::find(comm_);
    Verdict verdict = judge(mine);
    if (ranks_ == 1) return verdict;
    if (rank_ == 0 && plan_.group) verdict.slot = plan_.group->claim_slot();
    const int64_t print = pointer_print(mine);
    const int64_t aggregators = process_settings() ? process_settings()->cb_nodes : 0;
    int64_t told[] = {INT64_MIN,   INT64_MIN,    INT64_MIN,          INT64_MIN,       INT64_MIN, print, -print, PointerGroup::kept(),
                      aggregators, -aggregators, verdict.checkpoint, verdict.together};
    constexpr int kNumbers = sizeof told / sizeof told[0];
    int64_t most[kNumbers];
    if (rank_ == 0) {
      told[0] = static_cast<int64_t>(verdict.way);
      told[1] = verdict.code;
      told[2] = verdict.amode;
      told[3] = verdict.text_bytes;
      told[4] = verdict.slot;
    }
    real.Allreduce(told, most, kNumbers, MPI_INT64_T, MPI_MAX, comm_);
    return {static_cast<tree::Way>(most[0]),
            static_cast<int>(most[1]),
            static_cast<int>(most[2]),
            static_cast<int>(most[3]),
            most[4],
            most[5] != -most[6],
            most[7] < PointerGroup::kKeptAtMost,
            most[8] == -most[9],
            most[10] != 0,
            most[11] != 0};
  }

  void return_slot() {
    if (plan_.group && plan_.slot >= 0) plan_.group->give_back(plan_.slot);
  }

  // On rank 0: what to do with the path.
  Verdict judge(Fault& mine) {
    Verdict verdict;
    if (rank_ != 0) return verdict;
    verdict.checkpoint = mine.ok() && LocalCheckpoint::is_one(*process_settings(), path_);
    if (verdict.checkpoint) {
      verdict.way = tree::Way::as_without;
      verdict.together = SharedCheckpoint::is_meant(*process_settings(), path_, amode_, ranks_);
      if (verdict.together && redundant::Replica::now()) refuse_together(verdict, mine);
    } else if (mine.ok()) {
      verdict.way = decide(path_, amode_, settings_, mine);
    } else {
      verdict.way = tree::Way::refuse;
    }
    verdict.code = mine.code;
    verdict.amode = amode_;
    // Long to make, and nobody compares it where MPI alone opens the file.
    if (verdict.way != tree::Way::as_without || verdict.together || redundant::Replica::now())
      verdict.text_bytes = static_cast<int>(fingerprint(path_, settings_).size());
    return verdict;
  }

  void refuse_together(Verdict& verdict, Fault& mine) const {
    verdict = Verdict();
    verdict.way = tree::Way::refuse;
    mine =
        Fault(MPI_ERR_UNSUPPORTED_OPERATION,
              path_ +
                  ": a checkpoint that ranks open together cannot be had with --replicas yet: let each rank write a file of its own (MPI_COMM_SELF)");
  }

  Fault compare_with_first(const Verdict& verdict) {
    std::string text = fingerprint(path_, settings_);
    const std::string own = text;
    text.resize(verdict.text_bytes);
    real.Bcast(text.data(), verdict.text_bytes, MPI_BYTE, 0, comm_);
    if (amode_ != verdict.amode) return Fault(MPI_ERR_NOT_SAME, path_ + ": the ranks open it with different access modes");
    if (text != own) return Fault(MPI_ERR_NOT_SAME, path_ + ": the ranks open different files or give different hints");
    return Fault();
  }

  // On the node's own disk, by the MPI underneath: of one rank, or read by several, each the copy of its node.
  int open_checkpoint(Fault mine, bool aggregators_agreed, MPI_File* fh) {
    if (mine.ok()) mine = check_amode(amode_);
    std::unique_ptr<LocalCheckpoint> local;
    if (mine.ok()) {
      auto opened = LocalCheckpoint::open(*process_settings(), path_, amode_);
      if (opened) local = std::move(*opened);
      else mine = named(Fault(opened.status()));
    }
    int64_t code = mine.code, most = code;
    if (ranks_ > 1) real.Allreduce(&code, &most, 1, MPI_INT64_T, MPI_MAX, comm_);
    if (most != MPI_SUCCESS) {
      return_slot();
      return report(mine.ok() ? Fault(int(most)) : mine);
    }
    const NativeHints hints(comm_, info_, path_, aggregators_agreed);
    return open_native({comm_, filename_, amode_, hints.info(), path_, settings_}, plan_, fh, std::move(local));
  }

  // A plain file in a redundant job: by the same way as a protected one, so that all replicas use it as one.
  Fault open_plain_as_replica(const Verdict& verdict, Fault mine, ProtectedMpiFile& file) {
    MPI_Comm own = MPI_COMM_NULL;
    if (mine.ok()) mine = check_amode(amode_);
    HF_FAULT(begin_open(verdict, mine, file, own));
    int flags = file.reads() && file.writes() ? O_RDWR : file.writes() ? O_WRONLY : O_RDONLY;
    if (amode_ & MPI_MODE_CREATE) flags |= O_CREAT;
    if (amode_ & MPI_MODE_EXCL) flags |= O_EXCL;
    auto stack = file::open_plain_together(path_, flags, 0666, settings_, *redundant::Replica::now(), *file.exchange);
    // Programs ask so whether there is one, as h5py does for its mode 'a'.
    if (!stack) return stack.status().kind() == Kind::not_found ? Fault(Fault(stack.status()).code) : named_once(stack.status());
    file.stack = std::move(*stack);
    file.view = View::bytes();
    return furnish(file, own);
  }

  // What all ranks do first, whatever file it is.
  Fault begin_open(const Verdict& verdict, Fault mine, ProtectedMpiFile& file, MPI_Comm& own) {
    const Fault different = compare_with_first(verdict);
    if (mine.ok()) mine = different;
    HF_FAULT(Fault(real.Comm_dup(comm_, &own)));
    file.exchange = exchange::make_mpi(own);
    file.rank = rank_;
    file.ranks = ranks_;
    HF_FAULT(agree(*file.exchange, mine));
    file.path = path_;
    file.filename = filename_ ? filename_ : "";
    file.amode = amode_;
    file.settings = settings_;
    return Fault();
  }

  Fault open_protected(const Verdict& verdict, const Fault& mine, ProtectedMpiFile& file) {
    MPI_Comm own = MPI_COMM_NULL;
    HF_FAULT(begin_open(verdict, mine, file, own));
    const file::How how{.write = file.writes(),
                        .make = verdict.way == tree::Way::make,
                        .exclusive = (amode_ & MPI_MODE_EXCL) != 0,
                        .mode = file_mode()};
    if (redundant::Replica::now() && file.writes()) [[unlikely]]
      return open_protected_as_replica(how, file, own);
    auto found = file::find_together(path_, how, file.settings, *file.exchange);
    if (!found) return named_once(found.status());
    auto stack = file::open_together(std::move(*found), how, file.settings, *file.exchange);
    if (!stack) return named_once(stack.status());
    take_stack(std::move(*stack), file);
    return furnish(file, own);
  }

  void take_stack(std::unique_ptr<engine::ProtectedFile> stack, ProtectedMpiFile& file) {
    const layout::Manifest& manifest = stack->located().manifest;
    file.protected_file = stack.get();
    file.hints = hints_in_force(file.settings, manifest, file.exchange->size());
    file.view = View::bytes();
    if (profile::opening_record) profile::describe(*profile::opening_record, manifest.geometry.scheme.name(), manifest.geometry.unit_bytes);
    file.stack = std::move(stack);
  }

  // A checkpoint of several ranks, over the nodes' directories.
  Fault open_together(const Verdict& verdict, Fault mine, ProtectedMpiFile& file) {
    MPI_Comm own = MPI_COMM_NULL;
    if (mine.ok()) mine = check_amode(amode_);
    HF_FAULT(begin_open(verdict, mine, file, own));
    file.settings.fast_close = false;  // a version is durable before its manifest says that it is there
    auto shared = SharedCheckpoint::open(file.settings, path_, amode_, file_mode(), *file.exchange);
    if (!shared) return named_once(shared.status());
    auto stack = engine::ProtectedFile::open(std::move(shared->located), {.read = true, .write = file.writes(), .fresh = shared->fresh},
                                             file.settings, *file.exchange);
    if (!stack) {
      if (shared->checkpoint) shared->checkpoint->abandon();
      if (!shared->version.empty()) SharedCheckpoint::could_not_read(shared->version, stack.status().sentence());
      return named_once(stack.status());
    }
    if (const Status opened = shared->checkpoint ? shared->checkpoint->opened(*file.exchange) : Status(); !opened) {  // the same on all ranks
      (void)(*stack)->close();
      shared->checkpoint->abandon();
      return named_once(opened);
    }
    file.checkpoint = std::move(shared->checkpoint);
    file.version_read = std::move(shared->version);
    take_stack(std::move(*stack), file);
    if (WrittenCheckpoint* const one = file.checkpoint && file.checkpoint->minds_first_write() ? file.checkpoint.get() : nullptr)
      file.stack = before_first_write(std::move(file.stack), [one](bool resizes) { return one->first_write(resizes); });
    return furnish(file, own);
  }

  // What is only read each team reads by itself.
  Fault open_protected_as_replica(const file::How& how, ProtectedMpiFile& file, MPI_Comm own) {
    auto opened = file::open_as_replica(path_, how, file.settings, *redundant::Replica::now(), *file.exchange);
    if (!opened) return named_once(opened.status());
    file.stack = std::move(opened->file);
    file.hints = hints_in_force(file.settings, opened->manifest, file.exchange->size());
    file.view = View::bytes();
    if (profile::opening_record)
      profile::describe(*profile::opening_record, opened->manifest.geometry.scheme.name(), opened->manifest.geometry.unit_bytes);
    return furnish(file, own);
  }

  // Everything of a file that is MPI's: handle, group, shared pointer; and where the pointers start.
  Fault furnish(ProtectedMpiFile& file, MPI_Comm own) {
    attach_pointer(own, plan_, file.settings, file.shared);
    file.pointer_group = plan_.group;
    if (redundant::Replica::now() && ranks_ > 1) decide_pointer(own, file);
    if (file.writes() && file.protected_file && !file.checkpoint)
      attach_records(own, {path_, file.settings, &file.protected_file->located(), nullptr, (amode_ & MPI_MODE_DELETE_ON_CLOSE) != 0, file.reads()},
                     file, file.shared);
    real.Comm_group(own, &file.group);
    if (file.amode & MPI_MODE_APPEND) {
      const auto end = file.stack->agreed_size();
      HF_FAULT(told_once(file, end.status()));
      file.position = static_cast<int64_t>(*end);
      if (rank_ == 0) file.shared.pointer->store(file.position);
      file.exchange->barrier();
    }
    return get_handle(file, own);
  }

  // Ranks may have opened the file by themselves before: the first one's number counts.
  void decide_pointer(MPI_Comm own, ProtectedMpiFile& file) const {
    redundant::Replica& replica = *redundant::Replica::now();
    const uint64_t name = file::subject_of("shared pointer", path_);
    uint64_t subject = rank_ == 0 ? redundant::open_subject(name, replica.next_open(name)) : 0;
    real.Bcast(&subject, 1, MPI_UINT64_T, 0, own);
    file.shared.pointer = std::make_unique<DecidedPointer>(std::move(file.shared.pointer), replica, subject);
  }

  Fault get_handle(ProtectedMpiFile& file, MPI_Comm own) {
    Fault fault(real.File_open(own, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file.handle));
    if (fault.ok()) {
      keep_inherited_handler(file.handle);
      if (!remember(file.shared_from_this())) fault = Fault(MPI_ERR_IO, "too many files are open at once; close some before");
    }
    const Fault agreed = agree(*file.exchange, fault);
    if (fault.ok() && !agreed.ok()) forget(file.handle);
    return agreed;
  }

  // Of a Status that all ranks have got.
  Fault named_once(const Status& status) const { return rank_ == 0 ? named(Fault(status)) : Fault(Fault(status).code); }
  Fault named(Fault fault) const {
    if (!fault.sentence.empty() && fault.sentence.find(path_) == std::string::npos) fault.sentence = path_ + ": " + fault.sentence;
    return fault;
  }

  MPI_Comm comm_;
  const char* filename_;
  std::string path_;
  int amode_;
  MPI_Info info_;
  int rank_ = 0, ranks_ = 1;
  Settings settings_;
  PointerPlan plan_;
};

}  // namespace
}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  int between = 0;
  // What is not a communicator of one group is MPI's to refuse.
  if (comm == MPI_COMM_NULL || filename == nullptr || real.Comm_test_inter(comm, &between) != MPI_SUCCESS || between) {
    return next_mpi.File_open(comm, filename, amode, info, fh);
  }
  return Opener(comm, filename, amode, info).run(fh);
}
