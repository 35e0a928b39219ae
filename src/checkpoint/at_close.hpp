// `--protect-at close`: a close returns when its file is protected. Any thread may wait, and others go on meanwhile.
#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/local.hpp"

namespace holdfast::checkpoint {

class AtClose {
 public:
  AtClose(const Settings& settings, const LocalFiles& files)
      : waits_(settings.protect_at_close), patience_(settings.lock_patience_ms), files_(files) {}
  // Until what is closed of the file on this node is protected, or cannot be: its protector has said why. Not ok: it is not protected yet, and why. Versions that
  // are closed later are not waited for.
  Status wait(const std::string& path);

 private:
  std::optional<LocalFile> coming(const std::string& path, uint32_t most_number) const;
  bool is_in_vain();
  Status give_up(const LocalName& name);

  const bool waits_;
  const std::chrono::milliseconds patience_;
  const LocalFiles files_;
  std::mutex mutex_;                  // a child of a fork may find it held for ever
  std::optional<LocalName> in_vain_;  // the last that was waited for until patience was at an end
};

}  // namespace holdfast::checkpoint
