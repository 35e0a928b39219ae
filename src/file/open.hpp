// One way from a path to an open protected file: for a process on its own, and for those that open together. Whether a path is to be
// protected at all is the word of tree/; what stands at it is found, or made, here.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/config.hpp"
#include "catalog/located.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::file {

struct How {
  bool write = false;
  bool make = false;       // the file is to be made; one that is there already is opened
  bool exclusive = false;  // with `make`: one that is there already is refused
  uint32_t mode = 0644;    // permission bits of a file that is made
};

// Where a file lies, and whether this call has made it.
struct Found {
  catalog::Located located;
  bool fresh = false;
};

Result<Found> find(const std::string& path, const How& how, const Settings& settings);
// Collective: rank 0 makes it where it is to be made, then each rank finds it by its own ways to the targets. All get a Found, or all get a
// failure; only the first rank that failed has the sentence.
Result<Found> find_together(const std::string& path, const How& how, const Settings& settings, exchange::Exchange& ranks);

// A protected file that is open in this process alone.
class Alone {
 public:
  static Result<Alone> open(Found found, const How& how, const Settings& settings);
  static Result<Alone> open(const std::string& path, const How& how, const Settings& settings);
  Alone(Alone&&) = default;
  ~Alone();  // one that is not closed is let go as it is by then
  engine::ProtectedFile& operator*() const { return *file_; }
  engine::ProtectedFile* operator->() const { return file_.get(); }
  Status close();

 private:
  Alone() = default;
  std::unique_ptr<exchange::Exchange> alone_;
  std::unique_ptr<engine::ProtectedFile> file_;
};

// Its collective twin. `ranks` must outlive the file.
Result<std::unique_ptr<engine::ProtectedFile>> open_together(Found found, const How& how, const Settings& settings, exchange::Exchange& ranks);

}  // namespace holdfast::file
