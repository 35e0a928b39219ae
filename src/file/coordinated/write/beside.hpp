// A write that all replicas have agreed on and that a thread of the leader's makes, while the program goes on. What has come of it they hear at their next
// call on the file. Until then each of them has the bytes: the next leader writes them where this one is lost.
#pragma once
#include <memory>
#include <vector>

#include "base/file_layer.hpp"
#include "layers/buffered/background.hpp"

namespace holdfast::file {

class WriteBeside {
 public:
  explicit WriteBeside(layers::Background& background) : background_(background) {}
  ~WriteBeside() { wait(); }
  WriteBeside(const WriteBeside&) = delete;
  WriteBeside& operator=(const WriteBeside&) = delete;

  // In all replicas alike: which one is under way, if any.
  void agreed(std::span<const Extent> extents, ByteView data) { extents_.assign(extents.begin(), extents.end()), data_ = data; }
  void is_over() { extents_.clear(), data_ = {}; }
  bool is_under_way() const { return !extents_.empty(); }
  const std::vector<Extent>& extents() const { return extents_; }
  ByteView data() const { return data_; }

  // In the leader, before it is agreed.
  void start(FileLayer& below, std::span<const Extent> extents, ByteView data);
  // In the leader: what has come of the one that is under way. What another one had started, or was written over, it writes itself.
  Status finish(FileLayer& below);
  // Until this replica's thread is out of the file.
  void wait() const;
  // Older bytes may have been put over it.
  void is_to_be_written_again();

 private:
  struct Run;
  layers::Background& background_;
  std::vector<Extent> extents_;
  ByteView data_;
  std::shared_ptr<Run> run_;  // this replica's; none: it has not started the one that is under way
};

}  // namespace holdfast::file
