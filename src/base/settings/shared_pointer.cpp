#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "shared_pointer",
     .kind = Word{&SharedPointerSettings::shared_pointer},
     .hint = Hint::ours,
     .values = "automatic window process individual single native"},
    {.key = "merge", .kind = Either{&SharedPointerSettings::merge_later, "close", "later"}, .hint = Hint::ours},
    {.key = "max_metadata_records",
     .kind = Number<uint64_t>{&SharedPointerSettings::max_metadata_records, "a number of records", 1, 1ull << 32},
     .hint = Hint::ours},
    {.key = "ordered", .kind = Either{&SharedPointerSettings::ordered_by_scan, "root", "scan"}, .hint = Hint::ours},
};

}  // namespace

constinit const Area shared_pointer_area{"Shared file pointers", records};

}  // namespace holdfast
