// What a process says to a node's agent after the greeting (transport/greeting.hpp): requests and answers, each a header of fixed size, a name or
// sentence, and bytes. Integers are little-endian. docs/protocol.md.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "target/stripes.hpp"
#include "target/target.hpp"
#include "transport/greeting.hpp"

namespace holdfast::target {

inline constexpr uint32_t agent_protocol_version = 7;
inline constexpr uint32_t first_drawn_handle = 1u << 31;  // those from here on are the client's choice
inline constexpr size_t most_name_bytes = 4096;
inline constexpr size_t most_bulk_bytes = 1 << 20;    // more goes in several requests
inline constexpr size_t most_free_bytes = 64 << 10;   // for more the agent takes its turn with what its other clients ask
inline constexpr size_t most_got_bytes = 16 << 10;    // by a request among several
inline constexpr size_t most_together = 64;           // requests in one; one `get` among them
inline constexpr size_t most_page_bytes = 256 << 10;  // of small objects that are enumerated

// Objects, locks and what was not synced belong to a session. It has one connection at a time, and outlives one that was reset.
using SessionId = std::array<std::byte, 16>;  // drawn by the client

enum class AgentOp : uint16_t {
  attach = 1,  // name: a directory that the agent serves; all else of this connection is about it
  open,        // flags: OpenMode, bit 8: pages that other nodes write too, bit 9: `handle` is what it is to go by, from 2^31 on -> value: its handle
  close,       // handle: of an object or a lock
  read,        // handle, offset, length -> bytes
  write,       // handle, offset, bytes
  sync,
  write_back,
  truncate,  // handle, offset: the new size
  grow,      // the same
  size,      // handle -> value
  still_there,
  make_striped,  // name, offset: unit, length: count, flags: start + 1 -> stripes
  stripes,       // name -> stripes
  put,           // name, bytes, flags: 1 durable, handle: the ticket of what was appended for it, or 0
  append,        // bytes that belong before those of a put, handle: a ticket, or 0 with length: of all together -> value: its ticket
  get,           // name, length: how many at most -> bytes; value: how many there are, other: a ticket, by which (handle) more come from offset on
  make_directory,
  remove,
  remove_directory,
  set_aside,
  list,         // name -> names, each ended by a zero; value, other, handle and offset as of get, in names
  space,        // -> value: total, other: free
  identity,     // the directory is still the one that was attached
  lock,         // name, flags: Hold -> value: a handle
  break_locks,  // name -> sentences, each ended by a zero
  about,        // attached or not -> lines of text: what people ask of an agent
  end,          // the agent stops serving, and ends
  begin,        // number 0; flags: 1 go on with a session, whose last request carried out is the value, else no answer; bytes: its id, and those of
                // sessions that end: before anything else is answered their calls have ended
  nothing,      // an answer to what came before it; without one: the client uses nothing from here on, until it asks again
  settle,       // bytes: u32 handles, length: how many of them were written and must stand there, the others are synced only; flags: 1 durable
  directory,    // number 0, on a socket of the node, in the place of a session; name: a directory that the agent serves -> its descriptor
  several,      // bytes: requests one behind another, each with its name and bytes; carried out in turn up to the first that fails -> their answers,
                // each with its sentence and bytes
  checksums,    // handle, offset, length: of all blocks, bytes: AskedChecksums -> a u64 each
  sum,          // length, bytes: terms, the first of them of this directory -> bytes. The agent of the next term is asked for the sum of the others
  link,         // name: of an object, bytes: the name that it is to have as well
  each,  // name: a directory, bytes: the name of an object in each directory there, length: how many bytes of it at most -> SmallHeads with what
         // they announce; value, other, handle and offset as of list
};

struct AgentRequest {
  uint32_t number = 0;  // comes back with the answer
  uint16_t op = 0, flags = 0;
  uint32_t handle = 0, name_bytes = 0;
  uint32_t bulk_bytes = 0, quiet = 0;  // 1: no answer is wanted
  uint64_t offset = 0, length = 0;
};
static_assert(sizeof(AgentRequest) == 40);

struct AgentAnswer {
  uint32_t number = 0;
  int32_t sys_errno = 0;
  uint16_t kind = 0, reserved = 0;
  uint32_t sentence_bytes = 0, bulk_bytes = 0, unused = 0;
  uint64_t value = 0, other = 0;
  uint64_t incarnation = 0;  // drawn when the agent started: another one knows nothing of this one's sessions
};
static_assert(sizeof(AgentAnswer) == 48);

// Whether a header can be meant so: checked before anything that it announces is waited for.
bool sensible(const AgentRequest& request);
// Whether it may be one of several: what is done at once, with a short answer.
bool may_be_of_several(const AgentRequest& request);
bool sensible(const AgentAnswer& answer);

// The status that an answer tells; what cannot be a kind counts as Kind::io.
Status status_of(const AgentAnswer& answer, std::string sentence);

// u64 unit, i32 count, u32 hashed, then a u32 for each node.
Bytes encode_stripes(const Stripes& stripes);
std::optional<Stripes> decode_stripes(ByteView bytes);
// Which blocks, beside where they lie.
struct AskedChecksums {
  uint64_t key = 0, row = 0;
  int32_t unit = 0;
  uint32_t first = 0, block_bytes = 0, unused = 0;
};
static_assert(sizeof(AskedChecksums) == 32);
// Of each term: u64 offset, u64 bytes, u16 coefficient, u16 length of the address, u32 length of the object's name, address and name. Nothing where
// they are none, too many, or not whole.
inline constexpr size_t most_terms = 40;
Bytes encode_terms(std::span<const SumTerm> terms);
std::optional<std::vector<SumTerm>> decode_terms(ByteView bytes);
// What a page of an enumeration has of each name: this head, the name, the object. Whoever fills one takes names as long as they fit.
struct SmallHead {
  uint32_t name_bytes = 0, content_bytes = 0;
  int32_t sys_errno = 0;
  uint16_t kind = 0, is_large = 0;  // of the object; 1: it is asked for by itself
};
static_assert(sizeof(SmallHead) == 16);
// False: it does not fit beside what is there.
bool add_small(Bytes& page, const std::string& name, const Result<Bytes>& content);
struct SmallObject {
  std::string name;
  Result<Bytes> content;
  bool is_large = false;
};
std::optional<std::vector<SmallObject>> decode_small(ByteView page);
// Each ended by a zero; nothing where the last is not.
Bytes encode_names(std::span<const std::string> names);
std::optional<std::vector<std::string>> decode_names(ByteView bytes);

}  // namespace holdfast::target
