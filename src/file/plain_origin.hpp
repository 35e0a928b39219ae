// A plain file: reached by a descriptor of this process's own, beside the program's.
#pragma once
#include <cstdint>
#include <string>

#include "file/origin.hpp"

namespace holdfast::file {

class PlainOrigin final : public Origin {
 public:
  PlainOrigin(std::string id, std::string path) : id_(std::move(id)), path_(std::move(path)) {}
  // What a plain file goes by, whatever its names.
  static std::string id_of(uint64_t device, uint64_t inode);
  static bool is_id(const std::string& id);

  // `access`: O_RDONLY or O_WRONLY. False without a descriptor, too.
  bool allows(int access) const;
  void use(raw::Fd native) { native_ = std::move(native); }
  // A descriptor that came through exec and may be the file's; somebody else's to close.
  void inherit(int descriptor) { inherited_ = descriptor; }
  // Around an exec: whether the next image gets the descriptor, by which it finds the file whatever its name has become.
  void hand_over(bool yes) const;

  const std::string& path() override { return path_; }
  Result<Bottom> reach(Writing writing) override;
  bool kernel_keeps() const override { return true; }
  Result<raw::Fd> lock_descriptor(int inherited) override;
  int descriptor() const override { return native_.get(); }

 private:
  Status find_after_exec(Writing writing);
  bool is_this(int fd) const;
  raw::Fd handed_over() const;

  const std::string id_, path_;
  raw::Fd native_;
  int inherited_ = -1;
};

// Whether the descriptor may be used so: O_RDONLY or O_WRONLY.
bool allows(int fd, int access);

}  // namespace holdfast::file
