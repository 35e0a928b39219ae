#include "agent/request_reader.hpp"

#include <cassert>

namespace holdfast::agent {

namespace {
constexpr size_t most_kept = 4096;
}

std::span<std::byte> RequestReader::whole_stage() {
  switch (stage_) {
    case Stage::header: return std::as_writable_bytes(std::span(&request_, 1));
    case Stage::name: return std::as_writable_bytes(std::span(name_));
    case Stage::bulk: return bulk_;
    default: return {};
  }
}

std::span<std::byte> RequestReader::room() { return whole_stage().subspan(done_); }

RequestReader::State RequestReader::came(size_t bytes) {
  assert(bytes <= room().size());
  done_ += bytes;
  while (stage_ < Stage::whole && stage_ != Stage::door && done_ == whole_stage().size()) go_on();
  if (stage_ == Stage::senseless) return State::senseless;
  if (stage_ == Stage::door) return State::wants_memory;
  return stage_ == Stage::whole ? State::whole : State::begun;
}

// The stage that has just been filled is looked at before memory is taken for the next.
void RequestReader::go_on() {
  if (stage_ == Stage::header && !target::sensible(request_)) {
    stage_ = Stage::senseless;
    done_ = 0;
    return;
  }
  done_ = 0;
  switch (stage_) {
    case Stage::header:
      name_.resize(request_.name_bytes);
      stage_ = Stage::name;
      return;
    case Stage::name:
      stage_ = Stage::door;
      if (request_.bulk_bytes <= target::most_free_bytes) admit();
      return;
    default: stage_ = Stage::whole;
  }
}

void RequestReader::admit() {
  assert(stage_ == Stage::door);
  bulk_.resize(request_.bulk_bytes);
  stage_ = Stage::bulk;
}

void RequestReader::next() {
  stage_ = Stage::header;
  done_ = 0;
  if (bulk_.capacity() > most_kept) Bytes().swap(bulk_);  // a client that computes holds no memory; an assignment of {} would keep it
}

}  // namespace holdfast::agent
