// Files that programs open to read and write: each begins as a copy of the version before. Where nothing was written the copy goes again, and nobody has
// seen it. Nobody hears of what a program writes, so a note says how the copy was. docs/decisions/0098
#pragma once
#include <set>
#include <string>

#include "base/status.hpp"
#include "checkpoint/local.hpp"
#include "target/target.hpp"

namespace holdfast::checkpoint {

class Untouched {
 public:
  enum class Found : uint8_t {
    no_note,
    gone,     // nothing was written to it, and nobody may write to it any more: it is there no longer
    as_was,   // nothing was written to it yet
    written,  // it is a version as any other one; or somebody has opened it who is to write
  };
  explicit Untouched(const LocalFiles& files) : files_(files) {}
  // Before `copy` gets its name in "writing".
  Status begins(const LocalName& name, const std::string& copy, const Content& content) const;
  bool has(const LocalName& name) const;    // it began so, whatever has become of it
  void claim(const LocalName& name) const;  // it is written from here on, for all who look
  void forget(const LocalName& name) const;
  // What has become of it, where it lies in that state. `is_last`: it goes though somebody has it open still.
  Found settle(const LocalName& name, State state, bool is_last = false) const;
  // How the names of those begin in "openers" that nobody has claimed. Of this node, or of another one.
  std::set<std::string> noted() const;
  static std::set<std::string> noted_on(target::Target& target, const std::string& below);

 private:
  std::string note(const LocalName& name) const;
  std::string claimed_note(const LocalName& name) const;
  const LocalFiles files_;
};

}  // namespace holdfast::checkpoint
