#include "frontend/mpi/flatten.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>

#include "frontend/external32.hpp"
#include "frontend/mpi/basic_types.hpp"

namespace holdfast::frontend {

namespace {

using Map = std::shared_ptr<const Typemap>;

// The constructor's arguments as the program gave them. `numbers` joins what MPI hands out in integers, addresses and
// large counts, in the order of the constructor's C arguments.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int64_t> numbers;
  std::vector<MPI_Datatype> types;  // derived ones are ours to free

  Contents() = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (MPI_Datatype& type : types) {
      if (!is_predefined(type)) real.Type_free(&type);
    }
  }
};

int combiner_of(MPI_Datatype type) {
#if HF_HAS_Type_get_envelope_c
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  int combiner = MPI_COMBINER_NAMED;
  real.Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
#else
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  real.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
#endif
  return combiner;
}

// A large-count subarray or darray hands its integers and its counts apart: put back into the small one's order.
void restore_order(int combiner, const std::vector<int>& integers, const std::vector<int64_t>& counts, std::vector<int64_t>& numbers) {
  if (counts.empty()) {
    numbers.insert(numbers.begin(), integers.begin(), integers.end());
  } else if (combiner == MPI_COMBINER_SUBARRAY && integers.size() == 2) {  // ndims, order | sizes, subsizes, starts
    numbers.push_back(integers[0]);
    numbers.insert(numbers.end(), counts.begin(), counts.end());
    numbers.push_back(integers[1]);
  } else if (combiner == MPI_COMBINER_DARRAY && integers.size() >= 3) {  // size, rank, ndims, ... | gsizes
    numbers.insert(numbers.end(), integers.begin(), integers.begin() + 3);
    numbers.insert(numbers.end(), counts.begin(), counts.end());
    numbers.insert(numbers.end(), integers.begin() + 3, integers.end());
  } else {
    numbers.insert(numbers.end(), integers.begin(), integers.end());
    numbers.insert(numbers.end(), counts.begin(), counts.end());
  }
}

Status get_contents(MPI_Datatype type, Contents& into) {
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<int64_t> counts;
  int code = MPI_SUCCESS;
#if HF_HAS_Type_get_envelope_c
  MPI_Count n_integers = 0, n_addresses = 0, n_counts = 0, n_types = 0;
  code = real.Type_get_envelope_c(type, &n_integers, &n_addresses, &n_counts, &n_types, &into.combiner);
  if (code != MPI_SUCCESS || into.combiner == MPI_COMBINER_NAMED) return code ? Status(Kind::invalid, "not a datatype") : Status();
  std::vector<MPI_Count> large(n_counts + 1);
  integers.resize(n_integers + 1), addresses.resize(n_addresses + 1), into.types.resize(n_types + 1, MPI_DATATYPE_NULL);
  code =
      real.Type_get_contents_c(type, n_integers, n_addresses, n_counts, n_types, integers.data(), addresses.data(), large.data(), into.types.data());
  counts.assign(large.begin(), large.end() - 1);
#else
  int n_integers = 0, n_addresses = 0, n_types = 0;
  code = real.Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &into.combiner);
  if (code != MPI_SUCCESS || into.combiner == MPI_COMBINER_NAMED) return code ? Status(Kind::invalid, "not a datatype") : Status();
  integers.resize(n_integers + 1), addresses.resize(n_addresses + 1), into.types.resize(n_types + 1, MPI_DATATYPE_NULL);
  code = real.Type_get_contents(type, n_integers, n_addresses, n_types, integers.data(), addresses.data(), into.types.data());
#endif
  // One element more than announced, so that no array is empty: some MPIs refuse null pointers.
  integers.pop_back(), addresses.pop_back(), into.types.pop_back();
  if (code != MPI_SUCCESS) {
    into.types.clear();
    return Status(Kind::invalid, "the datatype does not tell its contents");
  }
  restore_order(into.combiner, integers, counts, into.numbers);
  into.numbers.insert(into.numbers.end(), addresses.begin(), addresses.end());
  return Status();
}

// Lower and upper bound of what has been placed so far.
class Bounds {
 public:
  void place(const Typemap& child, int64_t disp, int64_t count, int64_t stride) {
    if (count <= 0) return;
    const int64_t last = disp + (count - 1) * stride;
    cover(std::min(disp, last) + child.lb(), std::max(disp, last) + child.ub());
  }
  void cover(int64_t lb, int64_t ub) {
    lb_ = any_ ? std::min(lb_, lb) : lb;
    ub_ = any_ ? std::max(ub_, ub) : ub;
    any_ = true;
  }
  void give(Typemap& map) const { map.set_bounds(lb_, ub_); }

 private:
  bool any_ = false;
  int64_t lb_ = 0, ub_ = 0;
};

struct Placement {  // `count` copies of child, one extent after another, from byte `disp` on
  int64_t disp, count;
  size_t child;
};

Typemap place_all(const std::vector<Placement>& placements, const std::vector<Map>& children) {
  Typemap map;
  Bounds bounds;
  for (const Placement& p : placements) {
    const Typemap& child = *children[p.child];
    if (p.count <= 0) continue;
    map.repeat(child, p.disp, static_cast<uint64_t>(p.count), child.extent());
    bounds.place(child, p.disp, p.count, child.extent());
  }
  bounds.give(map);
  return map;
}

// MPI_Type_vector and hvector; `stride` in bytes.
Typemap vector_map(const Map& child, int64_t count, int64_t blocklength, int64_t stride) {
  const Typemap block = place_all({{0, blocklength, 0}}, {child});
  Typemap map;
  Bounds bounds;
  if (blocklength > 0) {
    map.repeat(block, 0, static_cast<uint64_t>(count), stride);
    bounds.place(block, 0, count, stride);
  }
  bounds.give(map);
  return map;
}

// One dimension of an array after the other, the fastest first. `pieces[d]` are the index ranges taken in dimension d.
using Ranges = std::vector<std::pair<int64_t, int64_t>>;  // first index, number of indices
Typemap array_map(const Map& child, const std::vector<int64_t>& sizes, const std::vector<Ranges>& pieces, bool fortran) {
  const size_t dims = sizes.size();
  Typemap level = *child;
  int64_t stride = child->extent();
  for (size_t step = 0; step < dims; ++step) {
    const size_t d = fortran ? step : dims - 1 - step;
    Typemap next;
    for (auto [first, count] : pieces[d]) next.repeat(level, first * stride, static_cast<uint64_t>(count), stride);
    level = std::move(next);
    stride *= sizes[d];
  }
  level.set_bounds(0, stride);
  return level;
}

Result<Typemap> subarray_map(const Contents& c, const Map& child) {
  const size_t dims = c.numbers[0];
  const int64_t* sizes = &c.numbers[1];
  std::vector<Ranges> pieces(dims);
  for (size_t d = 0; d < dims; ++d) pieces[d] = {{sizes[2 * dims + d], sizes[dims + d]}};
  return array_map(child, {sizes, sizes + dims}, pieces, c.numbers[1 + 3 * dims] == MPI_ORDER_FORTRAN);
}

// The indices that the process at `coordinate` of `processes` has in one distributed dimension.
Ranges distribute(int64_t size, int64_t distribution, int64_t argument, int64_t processes, int64_t coordinate) {
  if (distribution == MPI_DISTRIBUTE_NONE) return {{0, size}};
  const bool block = distribution == MPI_DISTRIBUTE_BLOCK;
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) argument = block ? (size + processes - 1) / processes : 1;
  Ranges ranges;
  for (int64_t first = coordinate * argument; first < size; first += argument * processes) {
    ranges.push_back({first, std::min(argument, size - first)});
    if (block) break;
  }
  return ranges;
}

Result<Typemap> darray_map(const Contents& c, const Map& child) {
  const size_t dims = c.numbers[2];
  int64_t rank = c.numbers[1];
  const int64_t* gsizes = &c.numbers[3];
  const int64_t *distributions = gsizes + dims, *arguments = distributions + dims, *processes = arguments + dims;
  std::vector<Ranges> pieces(dims);
  for (size_t d = dims; d-- > 0;) {  // the grid of processes is row-major whatever the array's order
    pieces[d] = distribute(gsizes[d], distributions[d], arguments[d], processes[d], rank % processes[d]);
    rank /= processes[d];
  }
  return array_map(child, {gsizes, gsizes + dims}, pieces, processes[dims] == MPI_ORDER_FORTRAN);
}

Typemap basic_map(MPI_Datatype type, Flavour flavour) {
  const BasicParts parts = basic_parts(type);
  Typemap map;
  int64_t at = 0;
  for (Run run : parts.runs) {
    if (flavour == Flavour::external) {
      run.length = run.length / native_bytes(run.basic) * external_bytes(run.basic);
      run.disp = at;
      at += static_cast<int64_t>(run.length);
    }
    if (flavour != Flavour::elements) run.basic = Basic::raw;
    map.add(run);
  }
  map.set_bounds(0, flavour == Flavour::external ? at : parts.extent);
  return map;
}

Result<Typemap> struct_map(const Contents& c, const std::vector<Map>& children) {
  const int64_t count = c.numbers[0];
  std::vector<Placement> placements;
  for (int64_t i = 0; i < count; ++i) placements.push_back({c.numbers[1 + count + i], c.numbers[1 + i], static_cast<size_t>(i)});
  return place_all(placements, children);
}

// indexed and its kin: pairs of blocklength and displacement (`unit` bytes each).
Typemap indexed_map(const Map& child, int64_t count, const int64_t* blocklengths, bool one_length, const int64_t* disps, int64_t unit) {
  std::vector<Placement> placements(count);
  for (int64_t i = 0; i < count; ++i) placements[i] = {disps[i] * unit, blocklengths[one_length ? 0 : i], 0};
  return place_all(placements, {child});
}

Result<Typemap> build(const Contents& c, const std::vector<Map>& children) {
  const std::vector<int64_t>& n = c.numbers;
  const Map child = children.empty() ? std::make_shared<Typemap>() : children[0];
  switch (c.combiner) {
    case MPI_COMBINER_DUP: return Typemap(*child);
    case MPI_COMBINER_CONTIGUOUS: return place_all({{0, n[0], 0}}, children);
    case MPI_COMBINER_VECTOR: return vector_map(child, n[0], n[1], n[2] * child->extent());
    case MPI_COMBINER_HVECTOR: return vector_map(child, n[0], n[1], n[2]);
    case MPI_COMBINER_INDEXED: return indexed_map(child, n[0], &n[1], false, n.data() + 1 + n[0], child->extent());
    case MPI_COMBINER_HINDEXED: return indexed_map(child, n[0], &n[1], false, n.data() + 1 + n[0], 1);
    case MPI_COMBINER_INDEXED_BLOCK: return indexed_map(child, n[0], &n[1], true, n.data() + 2, child->extent());
    case MPI_COMBINER_HINDEXED_BLOCK: return indexed_map(child, n[0], &n[1], true, n.data() + 2, 1);
    case MPI_COMBINER_STRUCT: return struct_map(c, children);
    case MPI_COMBINER_SUBARRAY: return subarray_map(c, child);
    case MPI_COMBINER_DARRAY: return darray_map(c, child);
    case MPI_COMBINER_RESIZED: {
      Typemap map = *child;
      map.set_bounds(n[0], n[0] + n[1]);
      return map;
    }
  }
  return Status(Kind::unsupported, "a datatype constructor that Holdfast does not know (combiner " + std::to_string(c.combiner) + ")");
}

// Names from before MPI-3, for what Fortran programs make with default integers. Only MPICH still has them.
int modern(int combiner) {
#if defined(MPICH_NUMVERSION)
  if (combiner == MPI_COMBINER_HVECTOR_INTEGER) return MPI_COMBINER_HVECTOR;
  if (combiner == MPI_COMBINER_HINDEXED_INTEGER) return MPI_COMBINER_HINDEXED;
  if (combiner == MPI_COMBINER_STRUCT_INTEGER) return MPI_COMBINER_STRUCT;
#endif
  return combiner;
}

bool predefined_combiner(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

// The f90 types are types of a fixed kind under another name.
Typemap f90_map(MPI_Datatype type, int combiner, Flavour flavour) {
  int bytes = 0;
  real.Type_size(type, &bytes);
  const int parts = combiner == MPI_COMBINER_F90_COMPLEX ? 2 : 1;
  const int typeclass = combiner == MPI_COMBINER_F90_INTEGER ? MPI_TYPECLASS_INTEGER : MPI_TYPECLASS_REAL;
  MPI_Datatype twin = MPI_BYTE;
  real.Type_match_size(typeclass, bytes / parts, &twin);
  Typemap map;
  const Typemap half = basic_map(twin, flavour);
  map.repeat(half, 0, parts, half.extent());
  map.set_bounds(0, half.extent() * parts);
  return map;
}

Result<Map> make(MPI_Datatype type, Flavour flavour) {
  Contents contents;
  HF_TRY(get_contents(type, contents));
  contents.combiner = modern(contents.combiner);
  Typemap map;
  if (contents.combiner == MPI_COMBINER_NAMED) {
    map = basic_map(type, flavour);
  } else if (predefined_combiner(contents.combiner)) {
    map = f90_map(type, contents.combiner, flavour);
  } else {
    std::vector<Map> children;
    for (MPI_Datatype child : contents.types) {
      Result<Map> flat = flatten(child, flavour);
      if (!flat) return flat.status();
      children.push_back(*flat);
    }
    Result<Typemap> built = build(contents, children);
    if (!built) return built.status();
    map = std::move(*built);
  }
  if (flavour != Flavour::external) {  // MPI's word on padding and on MPI_LB and MPI_UB
    MPI_Count lb = 0, extent = 0;
    real.Type_get_extent_x(type, &lb, &extent);
    map.set_bounds(lb, lb + extent);
  }
  map.finish();
  return std::make_shared<const Typemap>(std::move(map));
}

// What is kept with a datatype: one map per flavour.
struct Kept {
  Map maps[3];
};

std::atomic<uint64_t> gone{0};

int forget_typemap(MPI_Datatype, int, void* kept, void*) {
  ++gone;
  delete static_cast<Kept*>(kept);
  return MPI_SUCCESS;
}

int do_not_copy(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

std::mutex kept_mutex;  // over all of the below

int keyval() {
  static const int made = [] {
    int key = MPI_KEYVAL_INVALID;
    real.Type_create_keyval(do_not_copy, forget_typemap, &key, nullptr);
    return key;
  }();
  return made;
}

std::map<MPI_Datatype, Kept>& kept_predefined() {
  static auto* kept = new std::map<MPI_Datatype, Kept>;  // outlives exit handlers
  return *kept;
}

Kept* kept_with(MPI_Datatype type) {
  void* value = nullptr;
  int found = 0;
  real.Type_get_attr(type, keyval(), &value, &found);
  return found ? static_cast<Kept*>(value) : nullptr;
}

}  // namespace

uint64_t datatypes_gone() { return gone.load(std::memory_order_acquire); }

bool is_predefined(MPI_Datatype type) { return predefined_combiner(combiner_of(type)); }

Result<Map> flatten(MPI_Datatype type, Flavour flavour) {
  if (type == MPI_DATATYPE_NULL) return Status(Kind::invalid, "the datatype is MPI_DATATYPE_NULL");
  const int slot = static_cast<int>(flavour);
  {
    std::lock_guard lock(kept_mutex);
    auto found = kept_predefined().find(type);
    if (found != kept_predefined().end() && found->second.maps[slot]) return found->second.maps[slot];
  }
  const bool predefined = is_predefined(type);
  if (!predefined) {
    if (Kept* kept = kept_with(type)) {
      std::lock_guard lock(kept_mutex);
      if (kept->maps[slot]) return kept->maps[slot];
    }
  }
  Result<Map> made = make(type, flavour);
  if (!made) return made;
  if (predefined) {
    std::lock_guard lock(kept_mutex);
    kept_predefined()[type].maps[slot] = *made;
    return made;
  }
  std::lock_guard lock(kept_mutex);  // two threads must not replace each other's
  Kept* kept = kept_with(type);
  if (kept == nullptr) {
    kept = new Kept;
    if (real.Type_set_attr(type, keyval(), kept) != MPI_SUCCESS) {
      delete kept;
      return made;
    }
  }
  kept->maps[slot] = *made;
  return made;
}

}  // namespace holdfast::frontend
