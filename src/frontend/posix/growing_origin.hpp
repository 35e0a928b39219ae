// A checkpoint's file that processes of several nodes write, each by an open of its own (Checkpoints::open_shared): a protected file on the nodes' targets
// that has no path. It is found by its first manifest; after an exec by the record that nodes keep of it.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "exchange/exchange.hpp"
#include "file/open.hpp"
#include "file/origin.hpp"
#include "frontend/posix/checkpoints.hpp"

namespace holdfast::frontend::posix {

class GrowingOrigin final : public file::Origin {
 public:
  // What such a file goes by in this process.
  static std::string id_of(const std::string& file_id);
  static bool is_id(const std::string& id);

  GrowingOrigin(const std::string& id, std::string path, const Settings& settings);
  void use(const Checkpoints::Shared& shared) { shared_ = shared; }
  // Permission bits, once it is known where it lies.
  std::optional<mode_t> mode() const { return shared_ ? std::optional<mode_t>(shared_->manifest.mode) : std::nullopt; }
  // A descriptor that writes has gone. See Checkpoints::shared_closed.
  void left(bool arrived, bool last, bool alone);

  const std::string& path() override { return path_; }
  Result<file::Bottom> reach(Writing writing) override;
  bool kernel_keeps() const override { return false; }
  Result<raw::Fd> lock_descriptor(int inherited) override;
  // Its size is to be set: by the first write that is a truncation.
  Status resizes() { return is_written(true); }

 private:
  Status find();
  Status is_written(bool anew);

  const std::string file_id_, path_;
  Settings settings_;
  const std::unique_ptr<exchange::Exchange> alone_;
  std::optional<Checkpoints::Shared> shared_;
};

}  // namespace holdfast::frontend::posix
