#include "sim/openers_node.hpp"
#include "unit/target/forwarding_target.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::sim {

namespace {
constexpr uint64_t page_bytes = 4096;
constexpr uint64_t early = 4;  // one write in so many is handed on at once
}  // namespace

using Stamps = std::function<ObjectStamp(const std::string&)>;

void NodeMemory::lose() {
  for (auto& [identity, pages] : objects_) {
    pages->dirty.clear();
    pages->present.clear();
  }
  objects_.clear();
}

class RememberedObject final : public target::Object {
 public:
  RememberedObject(std::shared_ptr<target::Object> inner, std::shared_ptr<NodeMemory> node, std::shared_ptr<NodeMemory::Pages> pages, Stamps stamp,
                   std::string name, uint64_t identity, target::Pages shared)
      : inner_(std::move(inner)),
        node_(std::move(node)),
        pages_(std::move(pages)),
        stamp_(std::move(stamp)),
        name_(std::move(name)),
        identity_(identity),
        shared_(shared) {}
  ~RememberedObject() override {  // a close
    if (writes_) (void)hand_on();
  }

  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    uint64_t wanted = 0;
    for (const iovec& v : into) wanted += v.iov_len;
    for (uint64_t page = offset / page_bytes; page * page_bytes < std::min(offset + wanted, pages_->content.size()); ++page) HF_TRY(fetch(page));
    size_t done = 0;
    for (const iovec& v : into) {
      const size_t count = pages_->content.read(offset + done, ByteSpan(static_cast<std::byte*>(v.iov_base), v.iov_len));
      done += count;
      if (count < v.iov_len) break;
    }
    return done;
  }

  Status write(uint64_t offset, std::span<const iovec> from) override {
    Bytes all;
    for (const iovec& v : from)
      all.insert(all.end(), static_cast<const std::byte*>(v.iov_base), static_cast<const std::byte*>(v.iov_base) + v.iov_len);
    pages_->content.write(offset, all);
    if (shared_ == target::Pages::own) widen(offset, all);
    for (uint64_t page = (offset + page_bytes - 1) / page_bytes; (page + 1) * page_bytes <= offset + all.size(); ++page) pages_->present.insert(page);
    pages_->dirty.emplace_back(offset, std::move(all));
    pages_->writer = inner_;
    writes_ = true;
    return shared_ == target::Pages::shared || node_->one_in(early) ? hand_on() : Status();  // to shared pages writes are synchronous
  }
  Status sync() override {
    HF_TRY(hand_on());
    return inner_->sync();
  }
  Status write_back() override { return hand_on(); }
  Status truncate(uint64_t size) override {
    HF_TRY(hand_on());
    HF_TRY(changing([&] { return inner_->truncate(size); }));
    pages_->content.truncate(size);
    pages_->present.erase(pages_->present.lower_bound((size + page_bytes - 1) / page_bytes), pages_->present.end());
    return {};
  }
  Status grow(uint64_t size) override {
    HF_TRY(hand_on());
    HF_TRY(changing([&] { return inner_->grow(size); }));
    auto now = inner_->size();
    if (now.ok() && *now > pages_->content.size()) pages_->content.truncate(*now);
    return now.status();
  }
  Result<uint64_t> size() override { return pages_->content.size(); }
  Status still_there() override { return inner_->still_there(); }

 private:
  // A page that the node has in memory goes out as a whole, with what it remembers of the rest.
  void widen(uint64_t& offset, Bytes& bytes) const {
    if (bytes.empty()) return;
    uint64_t begin = offset, end = offset + bytes.size();
    if (pages_->present.contains(begin / page_bytes)) begin -= begin % page_bytes;
    if (pages_->present.contains((end - 1) / page_bytes)) end = std::min(((end - 1) / page_bytes + 1) * page_bytes, pages_->content.size());
    bytes.resize(end - begin);
    pages_->content.read(begin, bytes);
    offset = begin;
  }
  Status fetch(uint64_t page) {
    if (pages_->present.contains(page)) return {};
    const uint64_t at = page * page_bytes, size = pages_->content.size();
    Bytes bytes(std::min(page_bytes, size - at));
    iovec vector{bytes.data(), bytes.size()};
    auto got = inner_->read(at, std::span<const iovec>(&vector, 1));
    if (!got.ok()) return got.status();
    pages_->content.write(at, bytes);
    for (const auto& [offset, written] : pages_->dirty)
      if (offset < at + page_bytes && offset + written.size() > at) pages_->content.write(offset, written);
    pages_->present.insert(page);
    return {};
  }
  // What the server says of an object after a change: where nobody else came between, the node's pages are of it still.
  template <class Change>
  Status changing(Change change) {
    const ObjectStamp before = stamp_(name_);
    HF_TRY(change());
    const ObjectStamp after = stamp_(name_);
    if (before.identity == identity_ && after.identity == identity_ && before.changed == pages_->seen) pages_->seen = after.changed;
    return {};
  }
  Status hand_on() {
    if (pages_->dirty.empty()) return {};
    const auto dirty = std::exchange(pages_->dirty, {});
    return changing([&]() -> Status {
      for (const auto& [offset, bytes] : dirty) {
        const iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
        HF_TRY(pages_->writer->write(offset, std::span<const iovec>(&vector, 1)));
      }
      return {};
    });
  }

  std::shared_ptr<target::Object> inner_;
  std::shared_ptr<NodeMemory> node_;
  std::shared_ptr<NodeMemory::Pages> pages_;
  Stamps stamp_;
  std::string name_;
  uint64_t identity_;
  target::Pages shared_;
  bool writes_ = false;
};

class RememberingTarget final : public target::ForwardingTarget {
 public:
  RememberingTarget(std::shared_ptr<target::Target> inner, std::shared_ptr<NodeMemory> node, Stamps stamp)
      : ForwardingTarget(std::move(inner)), node_(std::move(node)), stamp_(std::move(stamp)) {}
  bool caches_by_node() const override { return true; }

  Result<std::shared_ptr<target::Object>> open(const std::string& name, target::OpenMode mode, target::Pages shared) override {
    auto object = inner_->open(name, mode, shared);
    if (!object.ok()) return object;
    auto size = (*object)->size();
    if (!size.ok()) return size.status();
    const ObjectStamp now = stamp_(name);
    auto& pages = node_->objects_[now.identity];
    if (!pages) pages = std::make_shared<NodeMemory::Pages>();
    if (pages->seen != now.changed || pages->content.size() < *size) {
      pages->present.clear();
      pages->content = {};
      pages->content.truncate(*size);
      for (const auto& [offset, bytes] : pages->dirty) pages->content.write(offset, bytes);
      pages->seen = now.changed;
    }
    return std::shared_ptr<target::Object>(std::make_shared<RememberedObject>(std::move(*object), node_, pages, stamp_, name, now.identity, shared));
  }
  // By a name that is opened for it.

 private:
  std::shared_ptr<NodeMemory> node_;
  Stamps stamp_;
};

std::shared_ptr<target::Target> make_remembering_target(std::shared_ptr<target::Target> inner, std::shared_ptr<NodeMemory> node, Stamps stamp) {
  return std::make_shared<RememberingTarget>(std::move(inner), std::move(node), std::move(stamp));
}

}  // namespace holdfast::sim
