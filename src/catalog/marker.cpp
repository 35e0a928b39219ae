#include "catalog/marker.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/node_path.hpp"
#include "base/text_bytes.hpp"
#include "catalog/text_codec.hpp"
#include "layout/geometry.hpp"
#include "layout/last_decoded.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::catalog {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t max_former_paths = 1024;

bool is_id(const std::string& text) { return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos; }

std::string text_at(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? from_printable(found->get_ref<const std::string&>()) : "";
}

uint64_t number_at(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : UINT64_MAX;
}

// Of a marker there is one copy.
std::string is_damaged(std::string_view, const char* how) {
  return std::string("its holdfast-target.json is damaged: ") + how + "; empty the directory, then run: holdfast repair FILE --replace DIR=DIR";
}
Result<std::string> unsealed(int format, ByteView bytes) { return layout::unseal("target", format, chars_of(bytes), is_damaged); }

Status senseless(const char* how) { return Status(Kind::corrupt, std::string("the target's marker makes no sense: ") + how); }

}  // namespace

std::string encode(const Marker& marker) {
  Json members = Json::array(), former = Json::array();
  for (const MarkerMember& member : marker.members) members.push_back(Json{{"uuid", member.uuid}, {"path", to_printable(member.path)}});
  for (const std::string& path : marker.former_paths) former.push_back(to_printable(path));
  Json json{{"about", "This directory is a Holdfast storage target. Do not edit or copy this file."},
            {"set", marker.set_id},
            {"epoch", marker.epoch},
            {"index", marker.index},
            {"uuid", marker.uuid()},
            {"members", std::move(members)},
            {"former_paths", std::move(former)}};
  return layout::seal("target", marker_format, json.dump(1));
}

namespace {

Result<Marker> decode_marker_anew(ByteView bytes) {
  auto text = unsealed(marker_format, bytes);
  if (!text) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return senseless("it is not a JSON object");
  Marker marker;
  marker.set_id = text_at(json, "set");
  marker.epoch = number_at(json, "epoch");
  const uint64_t index = number_at(json, "index");
  auto members = json.find("members");
  if (!is_id(marker.set_id) || marker.epoch == UINT64_MAX) return senseless("set or epoch");
  if (members == json.end() || !members->is_array() || members->empty() || members->size() > layout::max_members) return senseless("members");
  if (index >= members->size()) return senseless("index");
  marker.index = int(index);
  std::set<std::string> seen;
  for (const Json& entry : *members) {
    if (!entry.is_object()) return senseless("members");
    MarkerMember member{text_at(entry, "uuid"), text_at(entry, "path")};
    if (!is_id(member.uuid) || (!member.path.starts_with('/') && !names_a_node(member.path)) || !seen.insert(member.uuid).second)
      return senseless("a member");
    marker.members.push_back(std::move(member));
  }
  if (text_at(json, "uuid") != marker.uuid()) return senseless("its uuid is not the one at its index");
  auto former = json.find("former_paths");
  if (former != json.end() && former->is_array() && former->size() <= max_former_paths)
    for (const Json& path : *former)
      if (path.is_string()) marker.former_paths.push_back(from_printable(path.get_ref<const std::string&>()));
  return marker;
}

}  // namespace

Result<Marker> decode_marker(ByteView bytes) {
  static auto* const last =
      new layout::LastDecoded<Marker,
                              128>;  // each open reads those of all members, and some pools are wide; never destroyed, as files are closed late
  return last->or_else(bytes, decode_marker_anew);
}

std::string encode(const PoolMarker& marker) {
  const Json json{{"about", "This directory is a Holdfast storage target of a pool. Do not edit or copy this file."},
                  {"pool", marker.pool_id},
                  {"uuid", marker.uuid},
                  {"node", marker.node}};
  return layout::seal("target", pool_marker_format, json.dump(1));
}

Result<PoolMarker> decode_pool_marker(ByteView bytes) {
  auto text = unsealed(pool_marker_format, bytes);
  if (!text) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return senseless("it is not a JSON object");
  PoolMarker marker{text_at(json, "pool"), text_at(json, "uuid"), text_at(json, "node")};
  if (!is_id(marker.pool_id) || !is_id(marker.uuid)) return senseless("pool or uuid");
  if (!marker.node.empty() && !names_a_node(marker.node + ":/")) return senseless("node");
  return marker;
}

}  // namespace holdfast::catalog
