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
  while (stage_ < Stage::whole && done_ == whole_stage().size()) go_on();
  if (stage_ == Stage::senseless) return State::senseless;
  return stage_ == Stage::whole ? State::whole : State::begun;
}

// The stage that has just been filled is looked at before memory is taken for the next.
void RequestReader::go_on() {
  if (stage_ == Stage::header && !target::sensible(request_)) {
    stage_ = Stage::senseless;
    done_ = 0;
    return;
  }
  if (stage_ == Stage::header) name_.resize(request_.name_bytes);
  if (stage_ == Stage::name) bulk_.resize(request_.bulk_bytes);
  stage_ = Stage(uint8_t(stage_) + 1);
  done_ = 0;
}

void RequestReader::next() {
  stage_ = Stage::header;
  done_ = 0;
  if (bulk_.capacity() > most_kept) bulk_ = {};  // a client that computes holds no memory
}

}  // namespace holdfast::agent
