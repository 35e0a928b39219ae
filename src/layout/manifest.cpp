#include "layout/manifest.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "coding/checksum.hpp"
#include "layout/row_record.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::layout {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t max_text_bytes = 4096;   // PATH_MAX
constexpr size_t max_why_bytes = 512;     // longer reasons are cut when written
constexpr size_t max_name_bytes = 255;    // NAME_MAX
constexpr uint64_t max_offset = uint64_t(std::numeric_limits<int64_t>::max());

bool lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
bool is_id(std::string_view text) { return text.size() == 32 && lower_hex(text); }
bool is_id_or_empty(std::string_view text) { return text.empty() || is_id(text); }
bool is_absolute_or_empty(std::string_view text) { return text.empty() || text.front() == '/'; }
// One component that can be nothing but a directory below the target: promise 7.
bool is_directory_name(std::string_view text) {
  return !text.empty() && text.size() <= max_name_bytes && text.front() != '.' &&
         text.find('/') == std::string_view::npos;
}
// "<generation>.<rank>", numbers that fit 64 and 32 bits.
bool is_journal_name(std::string_view text) {
  const size_t dot = text.find('.');
  return dot != std::string_view::npos && dot <= 20 && text.size() - dot <= 11 && all_digits(text.substr(0, dot)) &&
         all_digits(text.substr(dot + 1));
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    uint32_t point = length == 1 ? c : c & (0xffu >> (length + 1));
    for (size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
    i += length;
  }
  return true;
}

// File names are bytes and JSON is Unicode: what is not UTF-8 becomes {"hex": "..."}.
Json text_to_json(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string hex;
  for (char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return Json{{"hex", hex}};
}

bool json_to_text(const Json& json, std::string& text) {
  if (json.is_string()) {
    text = json.get_ref<const std::string&>();
    return true;
  }
  if (!json.is_object()) return false;
  auto found = json.find("hex");
  if (found == json.end() || !found->is_string()) return false;
  const std::string& hex = found->get_ref<const std::string&>();
  if (hex.size() % 2 || !lower_hex(hex)) return false;
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  text.clear();
  for (size_t i = 0; i < hex.size(); i += 2) text += char(value(hex[i]) * 16 + value(hex[i + 1]));
  return true;
}

// Takes fields out of one JSON object with their types and bounds checked; keeps the first complaint.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::string& complaint)
      : object_(object), where_(std::move(where)), complaint_(complaint) {
    if (!object_.is_object()) complain("it", "is not an object");
  }

  void number(const char* key, uint64_t& into, uint64_t low, uint64_t high) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_number_unsigned()) return complain(key, "is not a whole number");
    const uint64_t value = found->get<uint64_t>();
    if (value < low || value > high) return complain(key, fmt::format("is {}, not from {} to {}", value, low, high));
    into = value;
  }
  template <class T>
  void small(const char* key, T& into, uint64_t low, uint64_t high) {
    uint64_t value = uint64_t(into);
    number(key, value, low, high);
    into = T(value);
  }
  void time(const char* key, int64_t& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_number_integer() || (found->is_number_unsigned() && found->get<uint64_t>() > max_offset))
      return complain(key, "is not a time");
    into = found->get<int64_t>();
  }
  void flag(const char* key, bool& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_boolean()) return complain(key, "is not true or false");
    into = found->get<bool>();
  }
  void text(const char* key, std::string& into, bool (*valid)(std::string_view) = nullptr) {
    const Json* found = find(key);
    if (!found) return;
    std::string value;
    if (!json_to_text(*found, value) || value.size() > max_text_bytes || value.find('\0') != std::string::npos)
      return complain(key, "is not a text of at most 4096 bytes");
    if (valid && !valid(value)) return complain(key, "has a value that is not allowed there");
    into = std::move(value);
  }
  // The array at `key`, or null.
  const Json* list(const char* key, size_t max_entries) {
    const Json* found = find(key);
    if (!found) return nullptr;
    if (!found->is_array() || found->size() > max_entries) {
      complain(key, fmt::format("is not a list of at most {} entries", max_entries));
      return nullptr;
    }
    return found;
  }
  const Json* find(const char* key) {
    if (!complaint_.empty()) return nullptr;
    auto found = object_.find(key);
    if (found == object_.end()) {
      complain(key, "is missing");
      return nullptr;
    }
    return &*found;
  }
  void complain(const char* key, const std::string& what) {
    if (complaint_.empty()) complaint_ = fmt::format("{}{} {}", where_, key, what);
  }

 private:
  const Json& object_;
  std::string where_;
  std::string& complaint_;
};

Json geometry_to_json(const Geometry& g) {
  return Json{{"scheme", g.scheme.name()},       {"placement", placement_name(g.placement)},
              {"single_directory", g.single_directory}, {"members", g.members},
              {"start", g.start},                {"unit_bytes", g.unit_bytes},
              {"block_bytes", g.block_bytes}};
}

void read_geometry(const Json& json, Geometry& g, std::string& complaint) {
  Fields fields(json, "geometry.", complaint);
  std::string scheme, placement;
  fields.text("scheme", scheme);
  fields.text("placement", placement);
  fields.flag("single_directory", g.single_directory);
  fields.small("members", g.members, 1, max_members);
  fields.small("start", g.start, 0, max_start);
  fields.number("unit_bytes", g.unit_bytes, min_unit_bytes, max_unit_bytes);
  fields.small("block_bytes", g.block_bytes, min_unit_bytes, max_unit_bytes);
  if (!complaint.empty()) return;
  auto known_scheme = Scheme::parse(scheme);
  auto known_placement = parse_placement(placement);
  if (!known_scheme) return fields.complain("scheme", "is unknown");
  if (!known_placement) return fields.complain("placement", "is unknown");
  g.scheme = *known_scheme;
  g.placement = *known_placement;
  if (Status status = g.check(); !status.ok()) complaint = status.sentence();
}

void read_members(const Json& list, std::vector<ManifestMember>& members, std::string& complaint) {
  for (size_t i = 0; i < list.size() && complaint.empty(); ++i) {
    ManifestMember member;
    Fields fields(list[i], fmt::format("members[{}].", i), complaint);
    fields.text("uuid", member.uuid, is_id_or_empty);
    fields.text("path", member.path, is_absolute_or_empty);
    fields.flag("stale", member.stale);
    fields.text("why", member.why);
    members.push_back(std::move(member));
  }
}

void read_generations(const Json& list, Manifest& m, std::string& complaint) {
  for (const Json& entry : list) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() == 0 || entry.get<uint64_t>() >= m.next_generation) {
      complaint = "open_generations names a generation that cannot have been given out";
      return;
    }
    m.open_generations.push_back(entry.get<uint64_t>());
  }
}

void read_journals(const Json& list, Manifest& m, std::string& complaint) {
  for (const Json& entry : list) {
    if (!entry.is_string() || !is_journal_name(entry.get_ref<const std::string&>())) {
      complaint = "journals has an entry that is not <generation>.<rank>";
      return;
    }
    m.journals.push_back(entry.get_ref<const std::string&>());
  }
}

void read_path_state(const Json& json, PathState& state, std::string& complaint) {
  constexpr uint64_t any = std::numeric_limits<uint64_t>::max();
  Fields fields(json, "path_state.", complaint);
  fields.number("device", state.device, 0, any);
  fields.number("inode", state.inode, 0, any);
  fields.number("size", state.size, 0, any);
  fields.time("change_ns", state.change_ns);
}

// What the fields say together: every offset that the formula can give must be one that a file can have.
void check_whole(const Manifest& m, std::string& complaint) {
  const Geometry& g = m.geometry;
  if (m.members.size() != size_t(g.members))
    complaint = fmt::format("it lists {} members and its geometry has {}", m.members.size(), g.members);
  else if (!g.single_directory && !is_directory_name(m.directory))
    complaint = "directory is not a plain name";
  else if (g.single_directory && !m.directory.empty())
    complaint = "directory is named for a file that has none";
  else if (m.rows > max_offset / (g.unit_bytes * uint64_t(g.scheme.width())) ||
           m.rows > max_offset / record_slot_bytes(g))
    complaint = fmt::format("{} rows are more than any file can have", m.rows);
  else if (divide_up(m.size, g.row_bytes()) > max_offset / (g.unit_bytes * uint64_t(g.scheme.width())))
    complaint = fmt::format("{} bytes are more than any file can have", m.size);
}

void read_manifest(const Json& json, Manifest& m, std::string& complaint) {
  Fields fields(json, "", complaint);
  fields.text("file_id", m.file_id, is_id);
  fields.text("set_id", m.set_id, is_id_or_empty);
  fields.text("path", m.path, is_absolute_or_empty);
  fields.text("directory", m.directory);
  fields.number("epoch", m.epoch, 0, max_offset);
  fields.number("settled_epoch", m.settled_epoch, 0, max_offset);
  fields.number("size", m.size, 0, max_offset);
  fields.number("rows", m.rows, 0, max_offset);
  fields.number("next_generation", m.next_generation, 1, max_offset);
  fields.small("mode", m.mode, 0, 07777);
  if (const Json* geometry = fields.find("geometry")) read_geometry(*geometry, m.geometry, complaint);
  if (const Json* list = fields.list("open_generations", max_open_generations)) read_generations(*list, m, complaint);
  if (const Json* list = fields.list("journals", max_journals)) read_journals(*list, m, complaint);
  if (const Json* list = fields.list("members", max_members)) read_members(*list, m.members, complaint);
  if (const Json* state = fields.find("path_state")) read_path_state(*state, m.path_state, complaint);
  if (complaint.empty()) check_whole(m, complaint);
}

}  // namespace

bool Manifest::is_synced(uint64_t generation) const {
  return generation != 0 && generation < next_generation &&
         std::find(open_generations.begin(), open_generations.end(), generation) == open_generations.end();
}

std::string encode(const Manifest& m) {
  Json members = Json::array();
  for (const ManifestMember& member : m.members)
    members.push_back(Json{{"uuid", member.uuid},
                           {"path", text_to_json(member.path)},
                           {"stale", member.stale},
                           {"why", text_to_json(std::string_view(member.why).substr(0, max_why_bytes))}});
  const PathState& state = m.path_state;
  Json json{{"file_id", m.file_id},
            {"set_id", m.set_id},
            {"path", text_to_json(m.path)},
            {"directory", text_to_json(m.directory)},
            {"geometry", geometry_to_json(m.geometry)},
            {"epoch", m.epoch},
            {"settled_epoch", m.settled_epoch},
            {"size", m.size},
            {"rows", m.rows},
            {"next_generation", m.next_generation},
            {"open_generations", m.open_generations},
            {"journals", m.journals},
            {"members", std::move(members)},
            {"path_state",
             Json{{"device", state.device}, {"inode", state.inode}, {"size", state.size}, {"change_ns", state.change_ns}}},
            {"mode", m.mode}};
  return seal("manifest", manifest_format, json.dump(1, ' ', false, Json::error_handler_t::replace));
}

Result<Manifest> decode(ByteView bytes) {
  auto damaged = [](const std::string& how) {
    return Status(Kind::corrupt, fmt::format("this copy of the manifest makes no sense: {}; run: holdfast repair", how));
  };
  if (bytes.size() > max_manifest_bytes) return damaged("it is larger than any manifest can be");
  const std::string_view sealed(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto text = unseal("manifest", manifest_format, sealed);
  if (!text) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return damaged("it is not JSON");
  Manifest manifest;
  std::string complaint;
  read_manifest(json, manifest, complaint);
  if (!complaint.empty()) return damaged(complaint);
  return manifest;
}

uint64_t file_key(const std::string& file_id) {
  return coding::plain_checksum(std::as_bytes(std::span(file_id.data(), file_id.size())));
}

std::string random_id() {
  std::array<unsigned char, 16> random;
  for (size_t have = 0; have < random.size();) {
    const ssize_t got = getrandom(random.data() + have, random.size() - have, 0);
    if (got > 0) have += size_t(got);
    else if (errno != EINTR) std::abort();  // a kernel without getrandom: no id would be safe to make up
  }
  std::string id;
  for (unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace holdfast::layout
