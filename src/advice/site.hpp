// Where a job's files lie, as far as anybody knows.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::advice {

struct Place {
  std::string file_system;    // "lustre", "ceph", "nfs", "tmpfs", "ext4" ...; empty: not known
  uint32_t stripe_count = 0;  // devices that a file's bytes are spread over now; 0: not known
  uint64_t stripe_bytes = 0;  // 0: not known
  uint32_t devices = 0;       // that the file system has; 0: not known
  uint32_t most_stripes = 0;  // that one file may have; 0: as many as there are devices

  bool lustre() const { return file_system == "lustre"; }
  bool ceph() const { return file_system == "ceph"; }
  bool striped() const { return stripe_count > 0 && stripe_bytes > 0; }
  // The kernel of the process's own machine takes the bytes; other machines need not be asked.
  bool local() const;
  // What one file can be spread over; 0: not known.
  uint32_t reachable_devices() const {
    return devices && most_stripes ? (devices < most_stripes ? devices : most_stripes) : devices ? devices : most_stripes;
  }
};

class Site {
 public:
  // Everything at `path` and below it, unless a longer path says otherwise.
  void add(std::string path, Place place) { places_.emplace_back(std::move(path), std::move(place)); }
  Place place_of(const std::string& path) const;

 private:
  std::vector<std::pair<std::string, Place>> places_;
};

}  // namespace holdfast::advice
