// The container: magic, sizes, checksum, deflated text.
#include "profile/log.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "coding/xxh3.hpp"

namespace holdfast::profile {

namespace {

constexpr char magic[8] = {'H', 'F', 'J', 'O', 'B', 'L', 'O', 'G'};
constexpr size_t head_bytes = 40;
constexpr uint64_t most_content = 4ull << 30;

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(value >> 8 * i);
}
uint64_t take(ByteView bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint64_t(bytes[at + size_t(i)]) << 8 * i;
  return value;
}

Status damaged(const std::string& how) { return Status(Kind::corrupt, "the log is damaged: " + how); }

// zlib's own form: deflate with its small header and Adler-32.
std::string deflated(const std::string& text) {
  uLongf length = compressBound(uLong(text.size()));
  std::string out(length, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &length, reinterpret_cast<const Bytef*>(text.data()), uLong(text.size()), 6) != Z_OK) return "";
  out.resize(length);
  return out;
}

Result<std::string> inflated(ByteView stored, uint64_t content_bytes) {
  std::string text;
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return Status(Kind::internal, "no memory to unpack the log");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
  stream.avail_in = uInt(stored.size());
  int state = Z_OK;
  // Grown as the data comes: a size that lies takes no memory.
  while (state == Z_OK && text.size() <= content_bytes) {
    const size_t before = text.size();
    text.resize(std::min<uint64_t>(content_bytes + 1, std::max<uint64_t>(before * 2, 1 << 16)));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = uInt(std::min<size_t>(text.size() - before, 1u << 30));
    text.resize(before + stream.avail_out);
    state = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || text.size() != content_bytes) return damaged("its content does not unpack to what its head says");
  return text;
}

}  // namespace

std::string encode(const Log& log) {
  const std::string text = to_json_text(log);
  const std::string stored = deflated(text);
  std::string out(magic, sizeof magic);
  put(out, log_format, 4);
  put(out, 0, 4);
  put(out, text.size(), 8);
  put(out, stored.size(), 8);
  std::string summed = out + stored;  // the head as well: a size that lies does not go unseen
  put(out, coding::xxh3(summed.data(), summed.size(), 0), 8);
  return out + stored;
}

Result<Log> decode(ByteView bytes) {
  if (bytes.size() < sizeof magic || std::memcmp(bytes.data(), magic, sizeof magic) != 0)
    return Status(Kind::invalid, "this is no log of a job: give the file that 'holdfast run --log' or --profile has written");
  if (bytes.size() < head_bytes) return damaged(fmt::format("it ends after {} bytes", bytes.size()));
  const uint64_t format = take(bytes, 8, 4), content_bytes = take(bytes, 16, 8), stored_bytes = take(bytes, 24, 8);
  if (format > log_format)
    return Status(Kind::version, fmt::format("the log has format {} and this Holdfast reads up to {}: use a newer one", format, log_format));
  if (stored_bytes > bytes.size() - head_bytes)
    return damaged(fmt::format("{} of its {} bytes are missing; was it copied while it was written?", stored_bytes - (bytes.size() - head_bytes),
                               stored_bytes + head_bytes));
  if (stored_bytes < bytes.size() - head_bytes) return damaged("there is more behind its end");
  std::string summed(reinterpret_cast<const char*>(bytes.data()), head_bytes - 8);
  summed.append(reinterpret_cast<const char*>(bytes.data()) + head_bytes, stored_bytes);
  if (coding::xxh3(summed.data(), summed.size(), 0) != take(bytes, 32, 8)) return damaged("its checksum differs");
  if (format == 0 || content_bytes > most_content || stored_bytes > UINT32_MAX) return damaged("its head makes no sense");
  auto text = inflated(bytes.subspan(head_bytes, stored_bytes), content_bytes);
  if (!text) return text.status();
  return from_json_text(*text);
}

const RankCounters* FileUse::slowest() const {
  auto less = [](const RankCounters& a, const RankCounters& b) { return a.counters.total_ns() < b.counters.total_ns(); };
  auto found = std::max_element(ranks.begin(), ranks.end(), less);
  return found == ranks.end() ? nullptr : &*found;
}
const RankCounters* FileUse::fastest() const {
  auto less = [](const RankCounters& a, const RankCounters& b) { return a.counters.total_ns() < b.counters.total_ns(); };
  auto found = std::min_element(ranks.begin(), ranks.end(), less);
  return found == ranks.end() ? nullptr : &*found;
}

}  // namespace holdfast::profile
