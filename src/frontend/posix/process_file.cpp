#include "frontend/posix/process_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/in_mpi.hpp"
#include "catalog/user_files.hpp"
#include "file/coordinated/coordinated.hpp"
#include "frontend/posix/appends_of_child.hpp"
#include "frontend/posix/losses.hpp"
#include "layers/plain/plain_file.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::posix {

std::atomic<int> ProcessFile::writing_{0}, ProcessFile::plain_{0};
std::atomic<int32_t> ProcessFile::process_{0};
std::atomic<bool (*)(const std::string&)> ProcessFile::asks_before_appends_{nullptr};

int32_t ProcessFile::process() {
  int32_t known = process_.load(std::memory_order_relaxed);
  if (known == 0) process_ = known = getpid();
  return known;
}

namespace {

// Order of locks: a file's, then the registry's.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<ProcessFile>> files;
};

// Never destroyed: other libraries' destructors may still write.
Registry& registry() {
  static auto* one = new Registry;
  return *one;
}

std::vector<std::shared_ptr<ProcessFile>> all_files() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::shared_ptr<ProcessFile>> files;
  for (auto& [id, file] : registry().files) files.push_back(file);
  return files;
}

std::vector<std::shared_ptr<ProcessFile>>& held_for_fork() {
  static auto* files = new std::vector<std::shared_ptr<ProcessFile>>;
  return *files;
}

}  // namespace

ProcessFile::ProcessFile(std::string file_id, const std::string& path, const Settings& settings) : file_id_(std::move(file_id)), settings_(settings) {
  if (file::PlainOrigin::is_id(file_id_)) origin_ = std::make_unique<file::PlainOrigin>(file_id_, path);
  else if (GrowingOrigin::is_id(file_id_)) origin_ = std::make_unique<GrowingOrigin>(file_id_, path, settings);
  else origin_ = std::make_unique<file::ProtectedOrigin>(file_id_, path, settings);
  plain_origin_ = dynamic_cast<file::PlainOrigin*>(origin_.get());
  protected_origin_ = dynamic_cast<file::ProtectedOrigin*>(origin_.get());
  growing_origin_ = dynamic_cast<GrowingOrigin*>(origin_.get());
}

std::shared_ptr<ProcessFile> ProcessFile::entry(const std::string& file_id, const std::string& path, const Settings& settings) {
  std::lock_guard lock(registry().mutex);
  std::shared_ptr<ProcessFile>& file = registry().files[file_id];
  if (!file) file.reset(new ProcessFile(file_id, path, settings));
  return file;
}

std::shared_ptr<ProcessFile> ProcessFile::find(const std::string& file_id) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().files.find(file_id);
  return found == registry().files.end() ? nullptr : found->second;
}

// Under the file's lock: `join` makes the caller one of those who have it open, or says why not.
template <class Join>
Result<std::shared_ptr<ProcessFile>> ProcessFile::joined(const std::string& file_id, const std::string& path, const Settings& settings, Join join) {
  for (;;) {
    std::shared_ptr<ProcessFile> file = entry(file_id, path, settings);
    std::lock_guard lock(file->mutex_);
    if (file->gone_) continue;  // its last descriptor has just been closed
    if (file->is_plain() && file->readers_ + file->writers_ == 0) ++plain_;
    const Status status = join(*file);
    if (status.ok()) return file;
    file->forget_if_unused();
    return status;
  }
}

void ProcessFile::count(Use use) {
  (use.writes ? writers_ : readers_) += 1;
  writing_ += use.writes;
  if (stack_.buffers()) show_presence(use.writes);
}

Result<std::shared_ptr<ProcessFile>> ProcessFile::open(file::Found found, Use use, const Settings& settings) {
  if (use.writes) HF_TRY(found.located.read_only);
  const std::string file_id = found.located.manifest.file_id, path = found.located.manifest.path;
  return joined(file_id, path, settings, [&](ProcessFile& file) { return file.join(found, use); });
}

Result<std::shared_ptr<ProcessFile>> ProcessFile::open_growing(const Checkpoints::Shared& shared, const std::string& path, Use use,
                                                               const Settings& settings) {
  return joined(GrowingOrigin::id_of(shared.manifest.file_id), path, settings, [&](ProcessFile& file) { return file.join_growing(shared, use); });
}

Status ProcessFile::join_growing(const Checkpoints::Shared& shared, Use use) {
  growing()->use(shared);
  HF_TRY(stack_ ? heard(stack_->sync()) : stack_up(origin_->reach({}), false));
  count(use);
  return Status();
}

void ProcessFile::forget_if_unused() {
  if (readers_ + writers_ > 0) return;
  gone_ = true;
  if (is_plain()) --plain_;
  std::lock_guard all(registry().mutex);
  registry().files.erase(file_id_);
}

std::shared_ptr<ProcessFile> ProcessFile::inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings) {
  return *joined(file_id, path, settings, [&](ProcessFile& file) {
    file.shared_ = true;
    if (use.inherited >= 0 && file.plain()) file.plain()->inherit(use.inherited);
    file.count(use);
    return Status();
  });
}

Status ProcessFile::join(file::Found& found, Use use) {
  // Whoever opens a file sees what others have closed.
  if (stack_) {
    HF_TRY(heard(stack_->sync()));
  } else {
    // A file that is there already is written only when something is written: until then its reader serves.
    const bool fresh = found.fresh;
    HF_TRY(stack_up(protected_origin()->use(std::move(found), fresh), fresh));
  }
  count(use);
  (void)origin_->path();
  return Status();
}

Status ProcessFile::stack_up(Result<file::Bottom> bottom, bool will_be_written) {
  if (!bottom) return bottom.status();
  auto stack = file::Stack::over(std::move(*bottom), !through_, settings_);
  if (!stack) return stack.status();
  stack_ = std::move(*stack);
  if (through_) HF_TRY(stack_.write_through());
  buffer_failures_ = 0;
  if (stack_.buffers()) show_presence(will_be_written);
  if (shared_ && stack_.appends()) stack_.appends()->place_at_once();
  return Status();
}

Status ProcessFile::reach(bool to_write) {
  if (stack_ && (stack_.writes() || !to_write)) return Status();
  drop_stack();
  return stack_up(origin_->reach({.now = to_write, .later = writers_ > 0}), to_write || (is_plain() && writers_ > 0));
}

Status ProcessFile::let_go() {
  const Status closed = stack_ && stack_.writes() ? stored(stack_->close()) : Status();
  drop_stack();
  if (!closed.ok()) failed(closed);
  return closed;
}

void ProcessFile::failed(const Status& status) {
  failure_ = status;
  ++failures_;
}

void ProcessFile::remove_unlinked() {
  for (const std::shared_ptr<ProcessFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    if (file->protected_origin()) file->protected_origin()->remove_if_unlinked();
  }
}

// Asked beside threads that are in a call on such a file.
bool ProcessFile::any_held() {
  const std::vector<std::shared_ptr<ProcessFile>> files = all_files();
  return std::any_of(files.begin(), files.end(), [](const std::shared_ptr<ProcessFile>& file) {
    const Settings& how = file->settings_;
    return file->writers_ > 0 && (!file->is_plain() || how.buffers > 0 || how.write_protocol == "distributed-separate");
  });
}

Status ProcessFile::let_go_all() {
  Status first;
  for (const std::shared_ptr<ProcessFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    if (file->writers_ == 0) continue;  // of those that only read, too: others may write through the descriptors that they share
    const Status status = file->let_go();
    if (first.ok()) first = status;
  }
  return first;
}

void ProcessFile::before_fork() {
  (void)let_go_all();  // what failed is told to the descriptors
  for (;;) {
    std::vector<std::shared_ptr<ProcessFile>>& held = held_for_fork();
    held = all_files();
    for (auto& file : held) file->mutex_.lock();
    registry().mutex.lock();
    if (registry().files.size() == held.size()) return;
    registry().mutex.unlock();  // one was opened or closed in between
    for (auto& file : held) file->mutex_.unlock();
  }
}

void ProcessFile::after_fork(bool child) {
  if (child) {
    process_ = getpid();
    if (any_loss()) forget_losses();
  }
  for (auto& file : held_for_fork()) {
    if (child) {
      file->stack_.abandon();
      if (file->protected_origin()) file->protected_origin()->forget_unlinked();
      file->locked_by_process_ = false;
    }
    file->shared_ = true;
    if (file->stack_.appends()) file->stack_.appends()->place_at_once();
    child ? file->mutex_.begin_anew() : file->mutex_.unlock();
  }
  registry().mutex.unlock();
  held_for_fork().clear();
}

Status ProcessFile::leave(bool writes) {
  std::lock_guard lock(mutex_);
  (writes ? writers_ : readers_) -= 1;
  Status status;
  if (writes && stack_ && stack_.writes()) {
    // A failure is the answer of this close, and of nobody's else.
    // A plain file is flushed by its last writer as close(2) would, which is no fsync.
    status = writers_ == 0 ? stored(stack_->close()) : is_plain() ? buffers_flushed() : stored(stack_->sync());
    if (writers_ == 0) drop_stack();
    if (writers_ == 0 && !status.ok()) note_loss(origin_->path(), status);
  }
  if (writes && growing()) growing()->left(status.ok() && failures_ == 0, writers_ == 0, !shared_);
  writing_ -= writes;
  if (readers_ + writers_ > 0) return status;
  drop_stack();
  forget_if_unused();
  if (protected_origin()) protected_origin()->remove_if_unlinked();
  return status;
}

std::string ProcessFile::path() {
  std::lock_guard lock(mutex_);
  return origin_->path();
}

std::optional<mode_t> ProcessFile::mode() {
  std::lock_guard lock(mutex_);
  return growing() ? growing()->mode() : std::nullopt;
}

// A protected file of which nothing is kept above it: what a read changes the file itself minds. Replicas agree on each read in its order.
bool ProcessFile::is_ready_to_read() const {
  if (redundant::Replica::now()) return false;
  if (!stack_ || !stack_.protected_file() || stack_.buffers() || (shared_ && appends_.load(std::memory_order_relaxed))) return false;
  return !stack_.appends() || stack_.appends()->is_empty();
}

Result<uint64_t> ProcessFile::read(uint64_t offset, std::span<const iovec> into) {
  {
    std::shared_lock beside_others(mutex_);
    if (is_ready_to_read())
      if (auto done = read_pieces(offset, into)) return done;
  }
  std::lock_guard lock(mutex_);
  take_in_appends();
  HF_TRY(reach(false));
  mind_others();
  auto done = read_pieces(offset, into);
  const bool gone = !done && stack_.protected_file() && !stack_.writes() && protected_origin() && protected_origin()->was_made_plain();
  if (!gone) return done;
  drop_stack();
  HF_TRY(reach(false));
  return read_pieces(offset, into);
}

Result<uint64_t> ProcessFile::read_pieces(uint64_t offset, std::span<const iovec> into) {
  uint64_t done = 0;
  for (const iovec& piece : into) {
    const Extent extent{offset + done, piece.iov_len};
    auto got = stack_->read({&extent, 1}, {static_cast<std::byte*>(piece.iov_base), piece.iov_len});
    if (!got && done == 0) return got.status();
    if (!got) break;
    done += *got;
    if (*got < piece.iov_len) break;
  }
  return done;
}

namespace {

struct Mapped {
  std::mutex mutex;
  std::set<std::string> ids;
};
Mapped& mapped() {
  static auto* one = new Mapped;
  return *one;
}

}  // namespace

void ProcessFile::note_mapped(const std::string& plain_id) {
  std::lock_guard lock(mapped().mutex);
  mapped().ids.insert(plain_id);
}

bool ProcessFile::was_mapped(const std::string& plain_id) {
  std::lock_guard lock(mapped().mutex);
  return mapped().ids.contains(plain_id);
}

Result<std::shared_ptr<ProcessFile>> ProcessFile::open_plain(raw::Fd native, const std::string& path, Use use, const Settings& settings) {
  struct stat state {};
  if (raw::fstat(native.get(), &state) != 0) return Status::from_errno(errno, path);
  return joined(plain_id(state.st_dev, state.st_ino), path, settings, [&](ProcessFile& file) { return file.join_plain(native, use); });
}

Status ProcessFile::join_plain(raw::Fd& native, Use use) {
  through_ |= was_mapped(file_id_);
  const int access = use.writes ? O_WRONLY : O_RDONLY;
  if (plain()->allows(access)) {
    HF_TRY(show_and_look());
  } else {
    raw::Fd found = layers::with_all_rights(std::move(native));
    if (plain()->descriptor() >= 0 && !file::allows(found.get(), access == O_WRONLY ? O_RDONLY : O_WRONLY)) {
      through_ = true;
      (void)let_go();
      return Status(Kind::unsupported, origin_->path() + ": is open with other rights already");
    }
    HF_TRY(let_go());
    plain()->use(std::move(found));
  }
  count(use);
  return Status();
}

void ProcessFile::hand_over(bool yes) {
  if (!any_plain()) return;
  std::lock_guard lock(registry().mutex);
  for (auto& [id, file] : registry().files)
    if (file->plain()) file->plain()->hand_over(yes);
}

// A failure that is this call's answer is not told a second time.
Status ProcessFile::heard(const Status& status) {
  if (!status.ok() && stack_.buffers()) (void)stack_.buffers()->failure_since(buffer_failures_);
  return status;
}

// Between processes a file is as one process left it at the last close. Two that have it open at once, one of them a writer, are better served
// without buffers.
void ProcessFile::show_presence(bool writes) {
  if (presence_ && (present_as_writer_ || !writes)) return;
  presence_.reset();  // or it would be met
  looked_.clear();
  auto* const replica = redundant::Replica::now();
  const std::string team = replica ? fmt::format("team{}-", replica->place().team) : "";  // twins are nobody else
  presence_ = std::make_unique<Presence>(team + file_id_, writes);
  present_as_writer_ = writes;
}

void ProcessFile::take_in_appends() {
  if (shared_ && appends_.load(std::memory_order_relaxed) && stack_ && !is_plain()) (void)let_go();
}

// An answer for each small write would be waited for. Only ranks of the job are looked for, and this thread has heard of them by calls of MPI alone: between two
// of those it need not look. All replicas look at the same calls.
bool ProcessFile::may_have_met(const redundant::Replica& replica) {
  if (replica.place().ranks == 1) return false;
  static constinit std::atomic<uint64_t> threads{0};
  static constinit thread_local uint64_t thread __attribute__((tls_model("initial-exec"))) = 0;
  if (thread == 0) thread = ++threads;
  const uint64_t heard = call_of_mpi.begun.load(std::memory_order_relaxed) + 1;
  return std::exchange(looked_[thread], heard) != heard;
}

bool ProcessFile::met_another() {
  auto* const replica = redundant::Replica::now();
  if (!replica) [[likely]]
    return presence_->met_another();
  if (!may_have_met(*replica)) return false;
  std::byte met{};
  const auto look = [](void* presence, ByteSpan into) { into[0] = std::byte(static_cast<Presence*>(presence)->met_another()); };
  replica->decide(file::subject_of("presence", origin_->path()), {&met, 1}, look, presence_.get());
  return met != std::byte(0);
}

void ProcessFile::mind_others() {
  if (!stack_.buffers() || through_ || !presence_ || !met_another()) return;
  through_ = true;
  news_ = true;
  if (const Status written = stack_.buffers()->write_through(); !written.ok()) {
    failed(written);
    (void)heard(written);
  }
}

Status ProcessFile::buffers_flushed() {
  if (stack_.buffers()) HF_TRY(heard(stack_.buffers()->flush()));
  return stack_.join();
}

Status ProcessFile::show_and_look() {
  if (stack_.buffers()) HF_TRY(heard(stack_.buffers()->forget()));
  return stack_.join();
}

Result<raw::Fd> ProcessFile::lock_descriptor(int inherited) {
  std::lock_guard lock(mutex_);
  if (is_plain()) HF_TRY(reach(false));
  return origin_->lock_descriptor(inherited);
}

// A protected file is found anew at the next use. What could not be written is told to the descriptors.
Status ProcessFile::meet_others() {
  std::lock_guard lock(mutex_);
  if (origin_->kernel_keeps()) return show_and_look();
  (void)let_go();
  return Status();
}

Status ProcessFile::allocate(int mode, const Extent& extent) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  if (!origin_->kernel_keeps()) note_written();
  return heard(stack_->allocate(mode, extent));
}

Result<int> ProcessFile::native_descriptor(bool to_write) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(to_write));
  HF_TRY(stack_.join());
  return origin_->descriptor();
}

Result<uint64_t> ProcessFile::next(FileLayer::Stretch stretch, uint64_t offset) {
  std::lock_guard lock(mutex_);
  take_in_appends();
  HF_TRY(reach(false));
  mind_others();
  return stack_->next(stretch, offset);
}

Status ProcessFile::write_through() {
  std::lock_guard lock(mutex_);
  through_ = true;
  if (stack_.buffers()) HF_TRY(heard(stack_.buffers()->write_through()));
  return stack_.write_through();
}

// By the clock that the kernel has for the times of files.
void ProcessFile::note_written() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  constexpr int64_t ns_of_s = 1000000000;
  written_ns_.store(now.tv_sec * ns_of_s + now.tv_nsec, std::memory_order_relaxed);
  origin_->written();
}

Result<uint64_t> ProcessFile::write(uint64_t offset, std::span<const iovec> from) {
  std::lock_guard lock(mutex_);
  take_in_appends();
  HF_TRY(reach(true));
  mind_others();
  note_written();
  uint64_t done = 0;
  for (const iovec& piece : from) {
    if (piece.iov_len == 0) continue;
    const Extent extent{offset + done, piece.iov_len};
    const Status written = heard(stack_->write({&extent, 1}, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len}));
    if (!written.ok() && done == 0) return written;
    if (!written.ok()) break;
    done += piece.iov_len;
  }
  return done;
}

Result<Extent> ProcessFile::append_below(std::span<const ByteView> pieces) {
  const auto asks = asks_before_appends_.load(std::memory_order_relaxed);
  if (!asks || !is_plain() || !asks(origin_->path())) [[likely]]
    return stack_->append(pieces, false);
  HF_TRY(buffers_flushed());
  return append_as_child(*stack_, origin_->path(), pieces);
}

Result<uint64_t> ProcessFile::append(uint64_t at_least, std::span<const iovec> from, uint64_t& offset) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  note_written();
  std::vector<ByteView> pieces;
  for (const iovec& piece : from) pieces.emplace_back(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
  auto taken = append_below(pieces);
  if (!taken) return heard(taken.status());
  offset = origin_->kernel_keeps() ? taken->offset : std::max(at_least, taken->offset);
  return taken->length;
}

Result<uint64_t> ProcessFile::size() {
  std::lock_guard lock(mutex_);
  take_in_appends();
  HF_TRY(reach(false));
  mind_others();
  return stack_->size();
}

ProcessFile::Identity ProcessFile::identity_of_copy() {
  std::lock_guard lock(mutex_);
  if (!protected_origin()) return {};
  const bool reached = protected_origin()->knows_copy() || reach(false).ok();
  return protected_origin()->identity_of_copy(reached ? stack_.protected_file() : nullptr);
}

Status ProcessFile::set_size(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (growing()) HF_TRY(growing()->resizes());
  HF_TRY(reach(true));
  note_written();
  return heard(stack_->set_size(bytes));
}

Status ProcessFile::sync() {
  std::lock_guard lock(mutex_);
  return stack_ && stack_.writes() ? heard(stored(stack_->sync())) : Status();
}

Status ProcessFile::flush_below() {
  std::lock_guard lock(mutex_);
  if (!stack_ || !stack_.writes()) return Status();
  const Status status = origin_->kernel_keeps() ? buffers_flushed() : heard(stored(stack_->sync()));
  if (status.ok()) written_ns_ = 0;
  return status;
}

Status ProcessFile::stored(const Status& status) {
  if (!status.ok()) return status;
  origin_->stored();
  written_ns_ = 0;
  return status;
}

Status ProcessFile::rename(const std::string& to) {
  std::lock_guard lock(mutex_);
  (void)let_go();  // a failure is told to the descriptors
  return protected_origin()->rename(to);
}

Status ProcessFile::unlink() {
  std::lock_guard lock(mutex_);
  (void)let_go();
  return protected_origin()->unlink();
}

void ProcessFile::put_down() {
  std::lock_guard lock(mutex_);
  (void)let_go();  // a failure is told to the descriptors
}

void ProcessFile::follow_rename(const std::string& to) {
  std::lock_guard lock(mutex_);
  protected_origin()->follow_rename(to);
}

void ProcessFile::follow_removal() {
  std::lock_guard lock(mutex_);
  protected_origin()->follow_removal();
}

void ProcessFile::leave_directory(const std::string& absolute) {
  for (const std::shared_ptr<ProcessFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    file::ProtectedOrigin* origin = file->protected_origin();
    if (!origin || !origin->is_unlinked() || catalog::parent_of(origin->path()) != absolute) continue;
    (void)file->let_go();
    origin->leave_directory(absolute);
  }
}

Status ProcessFile::untold(uint64_t& seen) {
  std::lock_guard lock(mutex_);
  if (stack_.buffers()) {
    if (const Status delayed = stack_.buffers()->failure_since(buffer_failures_); !delayed.ok()) failed(delayed);
  }
  if (seen == failures_) return Status();
  seen = failures_;
  return failure_;
}

}  // namespace holdfast::frontend::posix
