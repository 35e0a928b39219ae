#include "file/stack.hpp"

#include "file/coordinated/coordinated.hpp"
#include "file/part_files.hpp"

namespace holdfast::file {

namespace {

// What a plain file was given, the kernel keeps; a protected file's bytes outlive this process only by a sync.
layers::BufferPlan plan_for(const Bottom& bottom, const Settings& settings) {
  using Flush = layers::BufferPlan::Flush;
  return {.buffers = settings.buffers,
          .bytes = settings.buffer_size,
          .align = bottom.row_bytes,
          .read_ahead = bottom.reads,
          .flush = settings.buffer_flush == "needed" ? Flush::when_needed : Flush::when_full,
          .flush_after_ms = settings.buffer_flush_ms,
          .sync_after = bottom.is_protected};
}

// Where its writes are to be joined later.
std::unique_ptr<Parts> parts_for(const Bottom& bottom, const Protocols& protocols, const redundant::Replica& replica) {
  return bottom.writes ? parts_of(bottom.descriptor, protocols, replica) : nullptr;
}

}  // namespace

Result<Stack> Stack::over(Bottom bottom, bool buffers, const Settings& settings) {
  Stack stack;
  const layers::BufferPlan plan = plan_for(bottom, settings);
  stack.writes_ = bottom.writes;
  stack.protected_file_ = bottom.protected_file;
  stack.top_ = std::move(bottom.file);
  if (redundant::Replica* const replica = redundant::Replica::now(); replica && !bottom.name.empty()) [[unlikely]]
    HF_TRY(stack.coordinate(bottom, settings, *replica));
  if (buffers && settings.buffers > 0) {
    // All replicas have to call at the same moments of their program.
    layers::Background& background = redundant::Replica::now() ? layers::no_background() : layers::background_thread();
    layers::BegunWrites* const begun = stack.coordinated_ ? stack.coordinated_->begun_writes() : nullptr;
    auto buffered = layers::BufferedFile::make(std::move(stack.top_), plan, background, begun);
    if (!buffered) return buffered.status();
    stack.buffers_ = buffered->get();
    stack.top_ = std::move(*buffered);
  }
  if (bottom.is_protected) {
    auto appended = layers::AppendedFile::make(std::move(stack.top_), settings.buffer_bytes, !settings.fast_close);
    stack.appends_ = appended.get();
    stack.top_ = std::move(appended);
  }
  return stack;
}

// All replicas of this process's rank use it as one.
Status Stack::coordinate(Bottom& bottom, const Settings& settings, redundant::Replica& replica) {
  const Protocols protocols = choose(settings, replica, {.led = bottom.led != nullptr, .descriptor = bottom.descriptor, .writes = bottom.writes});
  const uint64_t subject = subject_of_next_open(replica, bottom.name);
  if (!bottom.led) {
    auto file = coordinated(std::move(top_), replica, subject, bottom.name, protocols, parts_for(bottom, protocols, replica));
    coordinated_ = file.get();
    top_ = std::move(file);
    return Status();
  }
  auto file = coordinated(std::move(*bottom.led), replica, subject, bottom.name, protocols);
  HF_TRY(file.status());
  top_ = std::move(*file);
  return Status();
}

Status Stack::join() { return coordinated_ ? coordinated_->join() : Status(); }
Status Stack::write_through() { return coordinated_ ? coordinated_->write_through() : Status(); }

void Stack::abandon() {
  (void)top_.release();
  *this = Stack();
}

}  // namespace holdfast::file
