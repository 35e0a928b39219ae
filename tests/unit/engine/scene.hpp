// One file in the simulated world, the openers of it, and what happens to them between two of their calls.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "engine/journal.hpp"
#include "engine/journal_overlay.hpp"
#include "engine/manifest_store.hpp"
#include "engine/members.hpp"
#include "engine/row_reader.hpp"
#include "engine/row_writer.hpp"
#include "sim/world.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::sim {

inline void expect_ok(const Status& status, const std::string& what = "") { EXPECT_TRUE(status.ok()) << what << ": " << status.sentence(); }

// One process by itself that has the file open. It dies with reset(): its locks go, and it commits nothing.
class Opener {
 public:
  explicit Opener(World& world, bool fresh = false, bool write = true) : Opener(world, world.locate(), fresh, write) {}
  Opener(World& world, catalog::Located located, bool fresh = false, bool write = true) {
    auto opened = engine::ProtectedFile::open(std::move(located), {true, write, fresh}, world.settings, *alone_);
    status = opened.status();
    if (opened.ok()) file_ = std::move(*opened);
  }
  engine::ProtectedFile* operator->() { return file_.get(); }
  explicit operator bool() const { return file_ != nullptr; }
  void die() { file_.reset(); }

  Status try_write(uint64_t offset, uint64_t count, int value) {
    const Extent extent{offset, count};
    return file_->write({&extent, 1}, Bytes(count, std::byte(value)));
  }
  void write(uint64_t offset, uint64_t count, int value) { expect_ok(try_write(offset, count, value), "write"); }
  void sync() { expect_ok(file_->sync(), "sync"); }
  void set_size(uint64_t bytes) { expect_ok(file_->set_size(bytes), "set_size"); }
  void close() { expect_ok(file_->close(), "close"), die(); }
  Result<Bytes> try_read(uint64_t offset, uint64_t count) {
    Bytes seen(count);
    const Extent extent{offset, count};
    auto got = file_->read({&extent, 1}, seen);
    if (!got.ok()) return got.status();
    seen.resize(*got);
    return seen;
  }
  Bytes read(uint64_t offset, uint64_t count) {
    auto seen = try_read(offset, count);
    EXPECT_TRUE(seen.ok()) << seen.status().sentence();
    return seen.ok() ? *seen : Bytes();
  }

  Status status;  // of the open

 private:
  std::unique_ptr<exchange::Exchange> alone_ = exchange::make_solo();
  std::unique_ptr<engine::ProtectedFile> file_;
};

inline Bytes read_anew(World& world, uint64_t offset, uint64_t count) {
  Opener reader(world, false, false);
  EXPECT_TRUE(reader) << reader.status.sentence();
  return reader ? reader.read(offset, count) : Bytes();
}

inline bool all_are(const Bytes& bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == std::byte(value); });
}

// Calls `act` whenever the sidecar is asked for, written or locked: another process has its turn there.
class WatchedPath final : public catalog::PathKeeper {
 public:
  WatchedPath(std::shared_ptr<catalog::PathKeeper> inner, std::function<void(const std::string& call)> act)
      : inner_(std::move(inner)), act_(std::move(act)) {}
  Result<layout::Manifest> sidecar() override {
    act_("sidecar");
    return inner_->sidecar();
  }
  Status publish(layout::Manifest& manifest, bool durable) override {
    act_("publish");
    return inner_->publish(manifest, durable);
  }
  Result<std::unique_ptr<target::Lock>> try_lock(bool make) override {
    act_("lock");
    return inner_->try_lock(make);
  }

 private:
  std::shared_ptr<catalog::PathKeeper> inner_;
  std::function<void(const std::string&)> act_;
};

// The same before a member is asked for an object as a whole, or for one to be opened.
class WatchedTarget final : public target::ForwardingTarget {
 public:
  WatchedTarget(std::shared_ptr<target::Target> inner, std::function<void(const std::string& call, const std::string& name)> act)
      : ForwardingTarget(std::move(inner)), act_(std::move(act)) {}
  bool caches_by_node() const override { return caches; }
  Result<std::shared_ptr<target::Object>> open(const std::string& name, target::OpenMode mode, target::Pages pages) override {
    act_("open", name);
    auto object = inner_->open(name, mode, pages);
    return object.ok() && wrap ? Result<std::shared_ptr<target::Object>>(wrap(*object)) : object;
  }
  Status put(const std::string& name, ByteView content, bool durable) override {
    act_("put", name);
    return inner_->put(name, content, durable);
  }
  Status move(const std::string& from, const std::string& to) override {
    act_("put", to);
    return inner_->move(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    act_("link", to);
    return inner_->link(from, to);
  }
  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    act_("get", name);
    return inner_->get(name, max_bytes);
  }

  bool caches = false;
  std::function<std::shared_ptr<target::Object>(std::shared_ptr<target::Object>)> wrap;  // what opens give

 private:
  std::function<void(const std::string&, const std::string&)> act_;
};

// A file that no one else has open.
struct NobodyElse final : engine::OtherOpeners {
  bool have_not_synced(uint64_t) const override { return false; }
  bool look_again() override { return false; }
};

// The engine's own parts on the world's members, for what only they can say.
struct Parts {
  explicit Parts(World& world) : Parts(world.locate()) {}
  explicit Parts(catalog::Located where)
      : located(std::move(where)),
        members(located),
        records(members, located),
        journals(members, records, located),
        writer(members, records, located),
        reader(members, records, located, journals, nobody, 0) {
    located.manifest.next_generation = 10;  // none is open: all that is written here counts as synced
    located.manifest.rows = 8;
    located.manifest.size = 8 * located.manifest.geometry.row_bytes();
  }
  engine::CodedRow row(uint64_t number, uint64_t generation, int value) {
    kept.push_back(Bytes(geometry().row_bytes(), std::byte(value)));
    engine::RowImage image{number, {}, kept.back().size()};
    for (int unit = 0; unit < geometry().scheme.k; ++unit) image.data.push_back(kept.back().data() + uint64_t(unit) * geometry().unit_bytes);
    return writer.code(image, generation);
  }
  void write_in_place(uint64_t number, uint64_t generation, int value) {
    const engine::CodedRow coded = row(number, generation, value);
    expect_ok(writer.write_in_place({&coded, 1}));
  }
  // A journal of that name with that one row.
  void write_journal(const std::string& name, uint64_t number, uint64_t generation, int value, const engine::Parts& parts = {}) {
    engine::Journal journal(members, records, located, name);
    expect_ok(journal.append(row(number, generation, value), parts));
  }
  const layout::Geometry& geometry() const { return located.manifest.geometry; }

  catalog::Located located;
  engine::Members members;
  engine::RecordStore records;
  engine::JournalOverlay journals;
  engine::RowWriter writer;
  NobodyElse nobody;
  engine::RowReader reader;
  std::list<Bytes> kept;
};

}  // namespace holdfast::sim
