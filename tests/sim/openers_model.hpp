// What several openers of one file may read: MPI's rules within an open, close-to-open between them.
//
// The file is dealt out in cells of a few bytes, which no row, unit or block knows of. A cell has the chain of writes it has seen; a
// read may give the newest of them that its process must see, or any that came later. Who may write a cell is asked first: one process
// at a time until its sync, so that the chain has one order. Where the rules are broken on purpose (overlapping writes) the order is
// unsaid, and so is what is left: those writes never count as synced.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace holdfast::sim {

inline constexpr uint64_t never = std::numeric_limits<uint64_t>::max();

// The byte that write `id` puts at `offset`: never zero, but for the write 0, which is what a file holds before anybody writes.
inline std::byte byte_of(uint64_t id, uint64_t offset) {
  if (id == 0) return std::byte(0);
  const auto value = uint8_t(id * 89 + offset * 31 + (offset >> 9) * 7);
  return std::byte(value ? value : 0xA5);
}

// byte_of goes up by 31 from byte to byte, but where `offset >> 9` changes: pieces of one endless line, which comes back after 256 bytes.
class LineOfBytes {
 public:
  static constexpr uint64_t piece_bytes = 512;
  LineOfBytes() {
    for (size_t i = 0; i < line_.size(); ++i) line_[i] = std::byte(uint8_t(i * 31) ? uint8_t(i * 31) : 0xA5);
  }
  // What byte_of(id, offset) and those after it are, to the end of the piece at the most.
  const std::byte* from(uint64_t id, uint64_t offset) const {
    constexpr uint64_t inverse_of_31 = 223;
    return id == 0 ? zeros_.data() : line_.data() + uint8_t((id * 89 + offset * 31 + (offset >> 9) * 7) * inverse_of_31);
  }
  static const LineOfBytes& the_one() {
    static const LineOfBytes line;
    return line;
  }

 private:
  std::array<std::byte, 256 + piece_bytes> line_;
  std::array<std::byte, piece_bytes> zeros_{};
};

// Calls what(at, line, bytes) for each piece of the `count` bytes from `offset` on; ends where it says false.
template <typename Do>
bool for_each_piece(uint64_t id, uint64_t offset, uint64_t count, Do&& what) {
  for (uint64_t at = 0; at < count;) {
    const uint64_t bytes = std::min(count - at, LineOfBytes::piece_bytes - (offset + at) % LineOfBytes::piece_bytes);
    if (!what(at, LineOfBytes::the_one().from(id, offset + at), bytes)) return false;
    at += bytes;
  }
  return true;
}
inline bool all_of_write(uint64_t id, uint64_t offset, ByteView bytes) {
  return for_each_piece(id, offset, bytes.size(),
                        [&](uint64_t at, const std::byte* line, uint64_t count) { return !std::memcmp(bytes.data() + at, line, count); });
}
inline void append_write(Bytes& to, uint64_t id, const Extent& extent) {
  for_each_piece(id, extent.offset, extent.length, [&](uint64_t, const std::byte* line, uint64_t count) {
    to.insert(to.end(), line, line + count);
    return true;
  });
}

struct Write {
  uint64_t id = 0;
  int process = -1, opener = -1;
  uint64_t collective = never;     // the opener's collective operation that synced it
  uint64_t synced = never;         // when
  uint64_t done = never;           // when the call came back
  uint64_t read_together = never;  // the opener's collective read that its process came to next
  bool durable = false;            // a power failure leaves it, too
  bool contested = false;          // two wrote at once: never counts as synced
  bool released = false;           // its process has gone or has synced it: others may write
};

// A collective operation of one opener: its ranks come and go at different times.
struct Collective {
  uint64_t begun = never;    // when the first of them came
  uint64_t synced_size = 0;  // the file's size that was synced then
  bool synced = false;       // one rank has been told that it worked
};

struct OpenerModel {
  std::vector<Collective> collectives;
  std::vector<uint32_t> dirty;          // cells
  std::vector<uint64_t> ends_at_reads;  // by collective read: how far the file reached for any rank that came to it
  uint64_t end = 0;                     // of what its processes have written
};

struct ProcessModel {
  int opener = -1;
  uint64_t collectives = 0;     // how many it has come to
  uint64_t reads_together = 0;  // likewise, of collective reads
  uint64_t completed = 0;       // of its opener's that had synced: those before this number
  uint64_t look = 0;            // what others had synced by then is to be seen
  uint64_t must_size = 0;       // the file is at least so long for it
  uint64_t may_size = 0;        // and may be so long, until it has looked at what another opener has cut
};

class OpenersModel {
 public:
  OpenersModel(uint64_t bytes, uint64_t cell_bytes) : cell_bytes_(cell_bytes), cells_(bytes / cell_bytes) {
    for (auto& chain : cells_) chain.push_back(base());
  }

  uint64_t cell_bytes() const { return cell_bytes_; }
  uint32_t cell_count() const { return uint32_t(cells_.size()); }
  uint64_t bytes() const { return cells_.size() * cell_bytes_; }
  uint64_t tick() { return ++now_; }

  int add_opener() {
    openers_.emplace_back();
    return int(openers_.size()) - 1;
  }
  void add_process(int process, int opener) {
    if (processes_.size() <= size_t(process)) processes_.resize(size_t(process) + 1);
    processes_[process] = {.opener = opener};
  }

  // --- writing
  bool may_write(int process, uint32_t cell) const {
    // Nor does a thread write where another one of its process is at it. An older one counts as long as its opener has not synced it: that commit may come after this write, and after this write's sync.
    return std::none_of(cells_[cell].begin(), cells_[cell].end(),
                        [&](const Write& w) { return in_doubt(w) && (w.process != process || w.done == never); });
  }
  // Whether anybody has written there while another one's write was not synced: what is left may be of both.
  bool is_contested(uint64_t begin, uint64_t end) const {
    for (uint64_t cell = begin / cell_bytes_; cell < std::min<uint64_t>(divide_up(end, cell_bytes_), cells_.size()); ++cell)
      if (std::any_of(cells_[cell].begin(), cells_[cell].end(), [](const Write& w) { return w.contested; })) return true;
    return false;
  }
  // Whether another one's write there is not synced yet: to write now is what MPI leaves undefined.
  void begin_write(int process, uint32_t cell, uint64_t id) {
    auto& chain = cells_[cell];
    const bool contested = !may_write(process, cell);
    for (Write& write : chain)
      if (contested && in_doubt(write)) write.contested = true;
    if (chain.size() > 6) forget_old(chain);
    Write write{id, process, processes_[process].opener};
    write.contested = contested;
    chain.push_back(write);
    OpenerModel& opener = openers_[write.opener];
    opener.dirty.push_back(cell);
    const uint64_t end = (cell + 1) * cell_bytes_;
    opener.end = std::max(opener.end, end);
    largest_ = std::max(largest_, end);
  }
  // The call came back. What failed for a good reason is as if somebody else wrote there at the same time.
  void end_write(int process, uint32_t cell, uint64_t id, bool worked) {
    for (Write& write : cells_[cell])
      if (write.process == process && write.id == id) write.done = tick();
    if (worked) processes_[process].must_size = std::max(processes_[process].must_size, (cell + 1) * cell_bytes_);
    else
      for (Write& write : cells_[cell]) write.contested |= write.process == process && write.id == id;
  }

  // --- collective operations that make writes visible (open, sync, set_size, close)
  void begin_collective(int process) {
    ProcessModel& me = processes_[process];
    OpenerModel& opener = openers_[me.opener];
    if (opener.collectives.size() == me.collectives) opener.collectives.push_back({tick(), synced_size_, false});
    ++me.collectives;
  }
  // It worked. `wrote`: it synced what the opener had written. `size`: what it made the file's size, if it did.
  void end_collective(int process, bool wrote, bool durable, uint64_t size = 0) {
    ProcessModel& me = processes_[process];
    OpenerModel& opener = openers_[me.opener];
    Collective& step = opener.collectives[me.collectives - 1];
    if (wrote && !step.synced) {
      step.synced = true;
      sync_all(me.opener, me.collectives - 1, durable);
      synced_size_ = std::max({synced_size_, opener.end, size});
      if (durable) durable_size_ = std::max(durable_size_, std::max(opener.end, size));
    }
    me.completed = me.collectives;
    me.look = step.begun;
    me.must_size = std::max({me.must_size, step.synced_size, wrote ? opener.end : 0, size});
    if (step.begun >= cut_) me.may_size = 0;
  }
  void may_grow_to(uint64_t size) { largest_ = std::max(largest_, size); }

  // --- reading
  // A collective read sees what any rank had written when it came to it. The read's number.
  uint64_t begin_read_together(int process) {
    ProcessModel& me = processes_[process];
    OpenerModel& opener = openers_[me.opener];
    const uint64_t number = me.reads_together++;
    if (opener.ends_at_reads.size() == number) opener.ends_at_reads.push_back(0);
    opener.ends_at_reads[number] = std::max(opener.ends_at_reads[number], me.must_size);
    for (uint32_t cell : opener.dirty)
      for (Write& write : cells_[cell])
        if (write.process == process && write.read_together == never) write.read_together = number;
    return number;
  }
  // When a process begins to read alone: what its other threads write meanwhile it may see.
  struct Look {
    uint64_t begun = never, must_size = never;
    uint64_t together = never;  // of its collective reads, which; `never`: it reads alone
    uint64_t may_size = 0;      // how far the file may have reached when it began
  };
  Look begin_read_alone(int process) { return {tick(), processes_[process].must_size, never}; }
  // Empty, or what is wrong with what the process has read at `offset`.
  std::string check(int process, uint64_t offset, ByteView seen, const Look& look) const {
    for (uint64_t at = 0; at < seen.size();) {
      const uint32_t cell = uint32_t((offset + at) / cell_bytes_);
      const uint64_t end = std::min<uint64_t>(seen.size(), (cell + 1) * cell_bytes_ - offset);
      const Chain& chain = cells_[cell];
      const size_t first = first_allowed(process, chain, look);
      if (is_one_of(chain, first, offset + at, seen.subspan(at, end - at))) {
        at = end;
        continue;
      }
      for (; at < end; ++at)
        if (byte_of(chain.back().id, offset + at) != seen[at] && !allowed(chain, first, offset + at, seen[at]))
          return describe(cell, offset + at, seen[at], first);
    }
    return "";
  }
  uint64_t must_size(int process) const { return processes_[process].must_size; }
  uint64_t must_size(int process, const Look& look) const {
    const ProcessModel& me = processes_[process];
    return look.together == never ? std::min(look.must_size, me.must_size) : std::max(me.must_size, openers_[me.opener].ends_at_reads[look.together]);
  }
  // A write of another thread beside the read: all of it was there, or nothing. Empty, or which was not.
  std::string half_seen(int process, std::span<const Extent> extents, ByteView seen, const Look& look) const {
    if (look.begun == never) return "";             // not beside other threads
    std::map<uint64_t, std::array<bool, 2>> found;  // by write: whether cells without it were seen, and cells with it
    uint64_t position = 0;
    for (const Extent& extent : extents) {
      for (uint64_t at = extent.offset; at < extent.end() && position < seen.size();) {
        const Chain& chain = cells_[at / cell_bytes_];
        const uint64_t bytes = std::min({(at / cell_bytes_ + 1) * cell_bytes_ - at, extent.end() - at, seen.size() - position});
        const Write& last = chain.back();
        const bool beside = last.process == process && !last.contested && (last.done == never || last.done > look.begun);
        const bool told_apart = chain.size() > 1 && (chain[chain.size() - 2].id - last.id) % 256 != 0;
        if (beside && told_apart) found[last.id][all_of_write(last.id, at, seen.subspan(position, bytes))] = true;
        at += bytes, position += bytes;
      }
    }
    for (const auto& [id, was] : found)
      if (was[0] && was[1]) return "write " + std::to_string(id) + " of the same process was half there";
    return "";
  }
  uint64_t largest() const { return largest_; }
  // Of its opener's ranks each may have told the others how far the file reached for it.
  uint64_t may_size(int process) const {
    uint64_t most = largest_;
    for (const ProcessModel& other : processes_)
      if (other.opener == processes_[process].opener) most = std::max(most, other.may_size);
    return most;
  }
  uint64_t synced_size() const { return synced_size_; }

  // --- the end of processes and openers
  // A process is gone: its looks no longer keep old writes.
  void forget_process(int process) { processes_[process].opener = -1; }
  // -1: of none, or of one that has gone.
  int opener_of(int process) const { return size_t(process) < processes_.size() ? processes_[process].opener : -1; }
  // All processes of the opener have gone: nobody writes for it any more.
  void release(int opener) {
    for (uint32_t cell : openers_[opener].dirty)
      for (Write& write : cells_[cell])
        if (write.opener == opener) write.released = true;
    openers_[opener].dirty.clear();
  }
  // What was synced but not durably may be gone; and may be refused to be read.
  bool power_failure() {
    bool torn = durable_size_ < synced_size_;
    for (auto& chain : cells_)
      for (Write& write : chain) {
        write.released = true;
        if (write.synced == never || write.durable) continue;
        write.synced = never;
        torn = true;
      }
    synced_size_ = durable_size_;
    for (ProcessModel& process : processes_) process.must_size = std::min(process.must_size, durable_size_);
    torn_ |= torn;
    return torn;
  }
  // The only opener that has written since its last sync cuts the file: what lies beyond `size` (where a cell begins) reads as zeros when the file
  // grows again.
  void begin_cut(uint64_t size, int process) {
    OpenerModel& opener = openers_[processes_[process].opener];
    for (uint32_t cell = uint32_t(size / cell_bytes_); cell < cells_.size(); ++cell) {
      if (cells_[cell].size() > 6) forget_old(cells_[cell]);
      Write zeros{0, process, processes_[process].opener};
      // Beyond what was synced it is no cut: what a killed opener has left there may be seen, or zeros.
      const bool left =
          std::any_of(cells_[cell].begin(), cells_[cell].end(), [&](const Write& w) { return w.synced == never && w.opener != zeros.opener; });
      zeros.contested = left && cell * cell_bytes_ >= synced_size_;
      cells_[cell].push_back(zeros);
      opener.dirty.push_back(cell);
    }
    synced_size_ = std::min(synced_size_, size);
    durable_size_ = std::min(durable_size_, size);
    for (ProcessModel& other : processes_) {
      other.may_size = std::max(other.may_size, largest_);
      other.must_size = std::min(other.must_size, size);
    }
    for (OpenerModel& other : openers_) {
      other.end = std::min(other.end, size);
      for (uint64_t& end : other.ends_at_reads) end = std::min(end, size);
      for (Collective& step : other.collectives) step.synced_size = std::min(step.synced_size, size);
    }
  }
  void end_cut(uint64_t size) {
    for (ProcessModel& other : processes_)
      other.may_size = std::max(other.may_size, largest_);  // who looked while it was cut may have seen the old end
    largest_ = size;
    cut_ = tick();
  }
  // Whether somebody else has synced bytes there which the process has not looked at.
  bool changed_behind(int process, uint32_t cell) const {
    for (const Write& write : cells_[cell])
      if (write.synced != never && write.opener != processes_[process].opener && write.synced > processes_[process].look) return true;
    return false;
  }
  // What a commit of the opener meets.
  struct Meeting {
    bool dirty = false;           // it has something to commit
    bool others_dirty = false;    // another one has, too
    uint64_t rows_of_others = 0;  // rows that both have touched: the other has synced, and this one has not looked since
  };
  Meeting meeting_of(int opener, uint64_t row_bytes) const {
    Meeting meeting;
    meeting.dirty = !openers_[opener].dirty.empty();
    meeting.others_dirty = others_are_dirty(opener);
    int process = -1;
    for (size_t i = 0; i < processes_.size(); ++i)
      if (processes_[i].opener == opener) process = int(i);
    if (process < 0) return meeting;
    std::vector<bool> mine(bytes() / row_bytes + 1), theirs(mine.size());
    for (uint32_t cell : openers_[opener].dirty) mine[cell * cell_bytes_ / row_bytes] = true;
    for (uint32_t cell = 0; cell < cells_.size(); ++cell)
      if (mine[cell * cell_bytes_ / row_bytes] && changed_behind(process, cell)) theirs[cell * cell_bytes_ / row_bytes] = true;
    meeting.rows_of_others = uint64_t(std::count(theirs.begin(), theirs.end(), true));
    return meeting;
  }
  bool others_are_dirty(int opener) const {
    for (size_t i = 0; i < openers_.size(); ++i)
      if (int(i) != opener && !openers_[i].dirty.empty()) return true;
    return false;
  }
  bool is_hole(uint32_t cell) const { return cells_[cell].size() == 1 && cells_[cell][0].id == 0; }

 private:
  using Chain = std::vector<Write>;  // oldest first; what can no longer be read is forgotten

  static bool in_doubt(const Write& write) { return write.synced == never && !write.released; }
  static Write base() {
    Write write;
    write.synced = 0;
    write.durable = write.released = true;
    return write;
  }
  bool must_be_seen(const Write& write, const ProcessModel& me, int process, const Look& look) const {
    if (write.contested) return false;
    if (write.process == process) return write.done != never && write.done <= look.begun;
    if (write.opener == me.opener && look.together != never && write.read_together <= look.together) return true;
    if (write.opener == me.opener && write.opener >= 0) return write.collective != never && write.collective < me.completed;
    return write.synced <= me.look;
  }
  size_t first_allowed(int process, const Chain& chain, const Look& look) const {
    const ProcessModel& me = processes_[process];
    for (size_t i = chain.size(); i-- > 0;)
      if (must_be_seen(chain[i], me, process, look)) return i;
    return 0;
  }
  // All of the bytes are of the same write that may be read. Most are: the others are looked at one by one.
  static bool is_one_of(const Chain& chain, size_t first, uint64_t offset, ByteView seen) {
    for (size_t i = chain.size(); i-- > first;)
      if (all_of_write(chain[i].id, offset, seen)) return true;
    return false;
  }
  bool allowed(const Chain& chain, size_t first, uint64_t offset, std::byte seen) const {
    // A fast close leaves it to the file systems what reaches the disk: a record that did not is a hole.
    if (torn_ && seen == std::byte(0)) return true;
    for (size_t i = chain.size(); i-- > first;)
      if (byte_of(chain[i].id, offset) == seen) return true;
    return false;
  }
  void sync_all(int opener, uint64_t collective, bool durable) {
    const uint64_t now = tick();
    for (uint32_t cell : openers_[opener].dirty)
      for (Write& write : cells_[cell]) {
        if (write.opener != opener || write.released) continue;
        write.released = true;
        write.collective = collective;
        if (!write.contested) write.synced = now, write.durable = durable;
      }
    openers_[opener].dirty.clear();
  }
  // What came before a write that everybody must see can no longer be read.
  void forget_old(Chain& chain) const {
    uint64_t oldest_look = now_;
    for (const ProcessModel& process : processes_)
      if (process.opener >= 0) oldest_look = std::min(oldest_look, process.look);
    for (size_t i = chain.size(); i-- > 1;)
      if (chain[i].synced <= oldest_look && chain[i].durable && !chain[i].contested) {
        chain.erase(chain.begin(), chain.begin() + long(i));
        return;
      }
  }
  std::string describe(uint32_t cell, uint64_t offset, std::byte seen, size_t first) const {
    std::string text = "byte " + std::to_string(offset) + " is " + std::to_string(int(seen)) + "; allowed:";
    const Chain& chain = cells_[cell];
    for (size_t i = first; i < chain.size(); ++i) {
      const Write& w = chain[i];
      text += " " + std::to_string(int(byte_of(w.id, offset))) + " (write " + std::to_string(w.id) + " of process " + std::to_string(w.process) +
              (w.contested         ? ", contested"
               : w.synced != never ? ", synced"
                                   : "") +
              ")";
    }
    if (seen == std::byte(0)) return text + "; it reads as a hole";
    for (const Write& w : chain)
      if (byte_of(w.id, offset) == seen)
        return text + "; that was write " + std::to_string(w.id) + " of process " + std::to_string(w.process) +
               (w.contested         ? ", contested"
                : w.synced != never ? ", synced"
                                    : "");
    return text;
  }

  bool torn_ = false;
  uint64_t cell_bytes_;
  std::vector<Chain> cells_;
  std::vector<OpenerModel> openers_;
  std::vector<ProcessModel> processes_;
  uint64_t now_ = 0, largest_ = 0, synced_size_ = 0, durable_size_ = 0;
  uint64_t cut_ = 0;  // when the file was cut last
};

}  // namespace holdfast::sim
