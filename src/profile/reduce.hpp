// From what the processes of a job have left to one log.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "profile/log.hpp"
#include "profile/piece_layout.hpp"

namespace holdfast::profile {

// One process's piece, read from its file. Of the records only those that were used, or a job of many ranks would not fit into memory.
struct LeftPiece {
  std::unique_ptr<PieceHeader> header;
  std::vector<TimeStep> times;
  std::map<uint32_t, std::unique_ptr<Record>> records;  // by slot
  std::vector<Traced> trace;
};

// Fills all of `into` from `offset` on; false where the file has less.
using ReadAt = std::function<bool(uint64_t offset, ByteSpan into)>;
// Nothing where it makes no sense: not a piece, of another version, cut short.
std::optional<LeftPiece> read_piece(const ReadAt& read_at);

// `job` holds what the caller knows (command, start, exit, damaged pieces ...); what it does not (start 0, ranks 0) is taken from the
// pieces.
Log reduce(Job job, const std::vector<LeftPiece>& pieces);

// A job's directory of pieces: what is in it, and the facts that `holdfast run` has left beside them.
inline constexpr char job_facts_name[] = "job.json";
inline constexpr char pieces_suffix[] = ".pieces";
std::string encode_job(const Job& job);
Result<Job> decode_job(std::string_view text);

}  // namespace holdfast::profile
