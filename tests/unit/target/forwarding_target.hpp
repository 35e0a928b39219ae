// Targets and objects that hand every call on: a test's own overrides what it is about.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "target/target.hpp"

namespace holdfast::target {

// What has an answer of its own in Target (write_together, settle, sum, ...) is made of these calls.
class ForwardingTarget : public Target {
 public:
  explicit ForwardingTarget(std::shared_ptr<Target> inner) : inner_(std::move(inner)) {}
  std::string describe() const override { return inner_->describe(); }
  Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages pages) override { return inner_->open(name, mode, pages); }
  Result<Stripes> make_striped(const std::string& name, const StripeWish& wish) override { return inner_->make_striped(name, wish); }
  Result<Stripes> stripes(const std::string& name) override { return inner_->stripes(name); }
  Status put(const std::string& name, ByteView content, bool durable) override { return inner_->put(name, content, durable); }
  bool moves_objects() const override { return inner_->moves_objects(); }
  Status move(const std::string& from, const std::string& to) override { return inner_->move(from, to); }
  Status link(const std::string& from, const std::string& to) override { return inner_->link(from, to); }
  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override { return inner_->get(name, max_bytes); }
  Status make_directory(const std::string& name) override { return inner_->make_directory(name); }
  Status remove(const std::string& name) override { return inner_->remove(name); }
  Status remove_directory(const std::string& name) override { return inner_->remove_directory(name); }
  Status set_aside(const std::string& name) override { return inner_->set_aside(name); }
  Result<std::vector<std::string>> list(const std::string& directory) override { return inner_->list(directory); }
  Result<Space> space() override { return inner_->space(); }
  Status check_identity() override { return inner_->check_identity(); }
  Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold) override { return inner_->try_lock(name, hold); }

 protected:
  const std::shared_ptr<Target> inner_;
};

class ForwardingObject : public Object {
 public:
  explicit ForwardingObject(std::shared_ptr<Object> inner) : inner_(std::move(inner)) {}
  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override { return inner_->read(offset, into); }
  Status write(uint64_t offset, std::span<const iovec> from) override { return inner_->write(offset, from); }
  Status sync() override { return inner_->sync(); }
  Status truncate(uint64_t size) override { return inner_->truncate(size); }
  Status grow(uint64_t size) override { return inner_->grow(size); }
  Result<uint64_t> size() override { return inner_->size(); }
  Status still_there() override { return inner_->still_there(); }

 protected:
  const std::shared_ptr<Object> inner_;
};

}  // namespace holdfast::target
