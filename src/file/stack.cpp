#include "file/stack.hpp"

#include "file/coordinated/coordinated.hpp"

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
          .sync_after = bottom.protected_file != nullptr};
}

}  // namespace

Result<Stack> Stack::over(Bottom bottom, bool buffers, const Settings& settings) {
  Stack stack;
  const layers::BufferPlan plan = plan_for(bottom, settings);
  stack.writes_ = bottom.writes;
  stack.protected_file_ = bottom.protected_file;
  stack.top_ = std::move(bottom.file);
  if (redundant::Replica* const replica = redundant::Replica::now(); replica && !bottom.name.empty()) [[unlikely]]
    stack.top_ = coordinated(std::move(stack.top_), *replica, subject_of_next_open(bottom.name), bottom.name);
  if (buffers && settings.buffers > 0) {
    auto buffered = layers::BufferedFile::make(std::move(stack.top_), plan, layers::background_thread());
    if (!buffered) return buffered.status();
    stack.buffers_ = buffered->get();
    stack.top_ = std::move(*buffered);
  }
  if (stack.protected_file_) {
    auto appended = layers::AppendedFile::make(std::move(stack.top_), settings.buffer_bytes, !settings.fast_close);
    stack.appends_ = appended.get();
    stack.top_ = std::move(appended);
  }
  return stack;
}

void Stack::abandon() {
  (void)top_.release();
  *this = Stack();
}

}  // namespace holdfast::file
