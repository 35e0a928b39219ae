// What dup, fork and exec share of an open file: its position and flags, and enough to find the file again. It lies in memory that
// all who share it have mapped, so it holds no pointers.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace holdfast::frontend::posix {

inline constexpr std::string_view open_state_line = "holdfast: an open file, 1\n";
inline constexpr size_t open_state_bytes = 8192;

struct OpenState {
  char line[32];                // open_state_line: what an image after exec knows it by
  uint32_t access;              // O_RDONLY, O_WRONLY or O_RDWR
  std::atomic<uint32_t> flags;  // O_APPEND, O_SYNC ...: what F_SETFL may change, and what stays as at open
  std::atomic<uint64_t> end;    // behind the last byte that `writer` wrote through it, whether other processes see it yet or not
  std::atomic<int32_t> writer;  // process; 0 once its bytes are on storage
  uint64_t position;            // under `turn`
  std::atomic<int32_t> locks;   // the descriptor by which the file is locked, and 1, where others inherit it; 0: none
  uint64_t entry_device;        // st_dev of what stood at the path
  pthread_mutex_t turn;         // robust: whoever holds it may be killed
  char file_id[64];
  char path[4096];

  // Zeroed memory becomes a state. False where a name is too long for it.
  bool fill(uint32_t open_flags, std::string_view id, std::string_view at_path);
  bool valid() const;
};
static_assert(sizeof(OpenState) <= open_state_bytes);

// The position is this thread's while it lives.
class PositionHeld {
 public:
  explicit PositionHeld(OpenState& state);
  ~PositionHeld() { pthread_mutex_unlock(&state_.turn); }
  PositionHeld(const PositionHeld&) = delete;
  PositionHeld& operator=(const PositionHeld&) = delete;

 private:
  OpenState& state_;
};

}  // namespace holdfast::frontend::posix
