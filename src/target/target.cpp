#include "target/target.hpp"

namespace holdfast::target {

Result<std::vector<uint64_t>> Object::checksums(const CheckedBlocks&) {
  return Status(Kind::unsupported, "its checksums are computed by who reads it");
}

Status Target::sum(std::span<const SumTerm>, ByteSpan) { return Status(Kind::unsupported, describe() + ": no agent adds what lies there"); }

Status Target::move(const std::string& from, const std::string& to) {
  return Status(Kind::unsupported, describe() + "/" + from + " cannot be moved to " + to);
}

Status Target::link(const std::string& from, const std::string& to) {
  return Status(Kind::unsupported, describe() + "/" + from + " cannot have the name " + to + " as well");
}

Status Target::get_each(const EachWish& wish, const TellOfEach& tell) {
  const auto names = list(wish.directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) tell(name, get(path_of_each(wish, name), wish.max_bytes));
  return Status();
}

std::string path_of_each(const Target::EachWish& wish, const std::string& name) {
  return (wish.directory.empty() ? "" : wish.directory + "/") + name + "/" + wish.object;
}

Status Target::write_together(std::span<const ObjectWrite> writes) {
  for (const ObjectWrite& one : writes) HF_TRY(one.object->write(one.offset, one.from));
  return Status();
}

Status Target::settle(Objects written, Objects left, bool durable) {
  HF_TRY(check_identity());
  for (const auto& object : written) {
    HF_TRY(object->still_there());
    if (durable) HF_TRY(object->sync());
  }
  if (!durable) return Status();
  for (const auto& object : left) HF_TRY(object->sync());
  return Status();
}

Status Target::write_and_settle(std::span<const ObjectWrite> writes, Objects written, Objects left, bool durable) {
  HF_TRY(write_together(writes));
  return settle(written, left, durable);
}

Result<Target::Locked> Target::try_lock_with(const LockWish& wish) {
  if (!wish.directory.empty()) HF_TRY(make_directory(wish.directory));
  auto lock = try_lock(wish.name, wish.hold);
  if (!lock.ok()) return lock.status();
  Locked locked{std::move(*lock), {}};
  if (!wish.object.empty()) locked.object = get(wish.object, wish.max_bytes);
  return locked;
}

}  // namespace holdfast::target
