// What the program sends, summed up for `--compare messages`.
#include "frontend/messages/sent.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "coding/xxh3.hpp"
#include "frontend/messages/state.hpp"
#include "frontend/mpi/flatten.hpp"

namespace holdfast::frontend::messages {

namespace {

using redundant::SentMessage;
using redundant::SentMessages;

// Of a datatype.
struct Shape {
  std::shared_ptr<const Typemap> map;  // null: of a kind that this version cannot lay flat; its envelope alone is compared
  uint64_t signature = 0;
};

// Kinds and sizes of the elements, in their order.
uint64_t signature_of(const Typemap& elements) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  for (const Run& run : elements.runs()) {
    if (parts.empty() || parts.back().first != uint64_t(run.basic)) parts.emplace_back(uint64_t(run.basic), 0);
    parts.back().second += run.bytes();
  }
  return coding::xxh3(parts.data(), parts.size() * sizeof parts[0], 0);
}

Shape make_shape(MPI_Datatype type) {
  const auto map = flatten(type, Flavour::bytes), elements = flatten(type, Flavour::elements);
  if (!map || !elements) {
    Replica::now()->sent_note("messages of a datatype that cannot be laid flat are compared by their envelope alone");
    return {};
  }
  return {*map, signature_of(**elements)};
}

// What was asked for last, of the program's thread alone: handles are used anew, so it holds until one of them has gone.
template <class Handle, class Known, size_t places>
class Lately {
 public:
  template <class Make>
  const Known& of(Handle handle, uint64_t gone, Make make) {
    if (gone != gone_) known_ = {}, gone_ = gone;
    const size_t hash = std::hash<Handle>()(handle);
    auto& one = known_[(hash ^ hash >> 9) % places];
    if (!one.second || one.first != handle) one = {handle, std::optional<Known>(make())};
    return *one.second;
  }

 private:
  std::array<std::pair<Handle, std::optional<Known>>, places> known_{};
  uint64_t gone_ = 0;
};

const Shape& shape_of(MPI_Datatype type) {
  static auto* const lately = new Lately<MPI_Datatype, Shape, 16>;  // outlives exit handlers
  return lately->of(type, datatypes_gone(), [&] { return make_shape(type); });
}

const SentOn& facts_of(MPI_Comm comm) {
  static auto* const lately = new Lately<MPI_Comm, SentOn, 16>;
  return lately->of(comm, State::get().communicators_gone(), [&] { return State::get().sent_on(comm); });
}

// -------------------------------------------------------------------------------------------------------------------- bytes

struct Scattered {
  const std::byte* at;
  uint64_t copies;
  Shape shape;
};

uint64_t sum_of_scattered(const Typemap& map, const std::byte* at, uint64_t bytes, uint64_t sum) {
  static thread_local std::array<std::byte, 16 << 10> packed;
  for (uint64_t position = 0; position < bytes;) {
    const size_t now = size_t(std::min<uint64_t>(packed.size(), bytes - position));
    pack(map, at, position, ByteSpan(packed.data(), now));
    sum = coding::xxh3(packed.data(), now, sum);
    position += now;
  }
  return sum;
}

void add(SentMessage& message, const std::byte* at, uint64_t copies, const Shape& shape) {
  message.signature = (message.signature ^ shape.signature) * 0x9e3779b97f4a7c15u + copies;
  if (!shape.map) return;
  const Typemap& map = *shape.map;
  const uint64_t bytes = copies * map.size();
  message.bytes += bytes;
  if (bytes == 0) return;
  message.sum = map.contiguous(copies) ? coding::xxh3(at + map.runs()[0].disp, bytes, message.sum) : sum_of_scattered(map, at, bytes, message.sum);
}

void record(SentMessages& all, const SentMessage& message) {
  if (all.record(message)) Replica::now()->look_at_sent();
}

// The messages of MPI itself are not the program's, those of its other threads come in no order.
SentMessages* recorder() {
  Replica* const replica = replica_of_program();
  SentMessages* const all = replica ? replica->sent() : nullptr;
  if (!all || all->is_by_its_thread()) return all;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) replica->sent_note("messages of threads beside the first one are not compared");
  return nullptr;
}

bool is_valid(MPI_Datatype type, MPI_Comm comm, MPI_Count count) { return type != MPI_DATATYPE_NULL && comm != MPI_COMM_NULL && count >= 0; }

// -------------------------------------------------------------------------------------------------------------------- collective calls

const std::byte* bytes_at(const void* at) { return static_cast<const std::byte*>(at); }

bool is_root(const SentOn& on, int root) { return on.is_inter ? root == MPI_ROOT : root == on.rank; }
// Between two groups nobody gives anything on the side of the root.
bool gives_to_root(const SentOn& on, int root) { return !on.is_inter || (root != MPI_ROOT && root != MPI_PROC_NULL); }

template <class Each>
void one_block(const Contribution& part, size_t index, Each each) {
  const MPI_Datatype type = part.types[index];
  const int64_t count = part.counts[index];
  if (count <= 0 || type == MPI_DATATYPE_NULL) return;
  const Shape& shape = shape_of(type);
  const int64_t extent = shape.map ? shape.map->extent() : 0;
  const int64_t place = part.places.any() ? part.places[index] * (part.types.differ() ? 1 : extent) : int64_t(index) * count * extent;
  each(bytes_at(part.at) + place, uint64_t(count), shape);
}

template <class Each>
void whole(const Contribution& part, Each each) {
  if (const MPI_Datatype type = part.types[0]; type != MPI_DATATYPE_NULL && part.counts[0] > 0)
    each(bytes_at(part.at), uint64_t(part.counts[0]), shape_of(type));
}

// Ranks that this one sends to, in the order of their blocks.
std::vector<int> neighbours_of(MPI_Comm comm, int rank) {
  int kind = MPI_UNDEFINED, count = 0;
  real.Topo_test(comm, &kind);
  std::vector<int> all;
  if (kind == MPI_CART) {
    real.Cartdim_get(comm, &count);
    for (int dimension = 0; dimension < count; ++dimension) {
      int before = MPI_PROC_NULL, behind = MPI_PROC_NULL;
      real.Cart_shift(comm, dimension, 1, &before, &behind);
      all.insert(all.end(), {before, behind});
    }
  } else if (kind == MPI_GRAPH) {
    real.Graph_neighbors_count(comm, rank, &count);
    all.assign(size_t(count), 0);
  } else if (kind == MPI_DIST_GRAPH) {
    int in = 0, weighted = 0;
    real.Dist_graph_neighbors_count(comm, &in, &count, &weighted);
    all.assign(size_t(count), 0);
  }
  return all;
}

// `each` buffer that this rank gives: (address, copies, shape).
template <class Each>
void contributions(Gives gives, const Contribution& send, const Contribution& receive, int root, MPI_Comm comm, const SentOn& on, Each each) {
  const bool in_place = send.at == MPI_IN_PLACE;
  const Contribution& from = in_place ? receive : send;
  const auto blocks = [&](const Contribution& part) {
    for (int rank = 0; rank < on.size; ++rank) one_block(part, size_t(rank), each);
  };
  switch (gives) {
    case Gives::nothing: break;
    case Gives::as_root:
      if (is_root(on, root)) whole(send, each);
      break;
    case Gives::to_all:
      if (root == MPI_UNDEFINED || gives_to_root(on, root)) whole(from, each);
      break;
    case Gives::to_root:
      if (root != MPI_UNDEFINED && !gives_to_root(on, root)) break;
      in_place ? one_block(receive, size_t(on.rank), each) : whole(send, each);
      break;
    case Gives::blocks_as_root:
      if (is_root(on, root)) blocks(send);
      break;
    case Gives::blocks: blocks(from); break;
    case Gives::sum_of_blocks: {
      int64_t copies = 0;
      for (int rank = 0; rank < on.own_size; ++rank) copies += from.counts[size_t(rank)];
      if (copies > 0) each(bytes_at(from.at), uint64_t(copies), shape_of(from.types[0]));
      break;
    }
    case Gives::to_neighbours: whole(send, each); break;
    case Gives::blocks_neighbours: {
      const std::vector<int> to = neighbours_of(comm, on.rank);
      for (size_t i = 0; i < to.size(); ++i)
        if (to[i] != MPI_PROC_NULL) one_block(send, i, each);
    }
  }
}

// -------------------------------------------------------------------------------------------------------------------- requests

// A request that can be started: what is looked at then.
struct Kept {
  SentMessage envelope;
  std::vector<Scattered> pieces;
};

class KeptRequests {
 public:
  static KeptRequests& get() {
    static auto* const all = new KeptRequests;
    return *all;
  }
  void keep(MPI_Request request, Kept kept) {
    std::lock_guard lock(mutex_);
    all_[request] = std::move(kept);
  }
  void forget(MPI_Request request) {
    std::lock_guard lock(mutex_);
    all_.erase(request);
  }
  void start(SentMessages& to, MPI_Request request) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(request);
    if (found == all_.end()) return;
    SentMessage message = found->second.envelope;
    for (const Scattered& piece : found->second.pieces) add(message, piece.at, piece.copies, piece.shape);
    record(to, message);
  }

 private:
  std::mutex mutex_;
  std::map<MPI_Request, Kept> all_;
};

SentMessage envelope(const SentBy& by, int peer, int tag, const SentOn& on) {
  SentMessage message;
  message.by = &by;
  message.communicator = on.number;
  message.peer = peer, message.tag = tag;
  return message;
}
int peer_of(int root) { return root == MPI_UNDEFINED ? SentMessage::none : root; }

}  // namespace

void sent(const SentBy& by, const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  SentMessages* const all = recorder();
  if (!all || !is_valid(type, comm, count)) return;
  SentMessage message = envelope(by, dest, tag, facts_of(comm));
  if (dest != MPI_PROC_NULL) add(message, bytes_at(buf), uint64_t(count), shape_of(type));
  record(*all, message);
}

void sent(const SentBy& by, Gives gives, const Contribution& send, const Contribution& receive, int root, MPI_Comm comm) {
  SentMessages* const all = recorder();
  if (!all || comm == MPI_COMM_NULL) return;
  const SentOn& on = facts_of(comm);
  SentMessage message = envelope(by, peer_of(root), SentMessage::none, on);
  contributions(gives, send, receive, root, comm, on,
                [&](const std::byte* at, uint64_t copies, const Shape& shape) { add(message, at, copies, shape); });
  record(*all, message);
}

void kept(const SentBy& by, MPI_Request request, const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if (!recorder() || !is_valid(type, comm, count)) return;
  Kept one{envelope(by, dest, tag, facts_of(comm)), {}};
  if (dest != MPI_PROC_NULL) one.pieces.push_back({bytes_at(buf), uint64_t(count), shape_of(type)});
  KeptRequests::get().keep(request, std::move(one));
}

void kept(const SentBy& by, MPI_Request request, Gives gives, const Contribution& send, const Contribution& receive, int root, MPI_Comm comm) {
  if (!recorder() || comm == MPI_COMM_NULL) return;
  const SentOn& on = facts_of(comm);
  Kept one{envelope(by, peer_of(root), SentMessage::none, on), {}};
  contributions(gives, send, receive, root, comm, on, [&](const std::byte* at, uint64_t copies, const Shape& shape) {
    one.pieces.push_back({at, copies, shape});
  });
  KeptRequests::get().keep(request, std::move(one));
}

void started(int count, const MPI_Request* requests) {
  SentMessages* const all = recorder();
  if (!all) return;
  for (int i = 0; i < count; ++i) KeptRequests::get().start(*all, requests[i]);
}

void forgotten(const MPI_Request* request) { KeptRequests::get().forget(*request); }

}  // namespace holdfast::frontend::messages
