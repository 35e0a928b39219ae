#include "redundant/membership/lease.hpp"

namespace holdfast::redundant {

void Lease::renew(int64_t said_ms, int64_t deadline_ms) { until_ms_ = said_ms + deadline_ms; }

bool Lease::is_over(int64_t now_ms) const { return now_ms > until_ms_.load(std::memory_order_relaxed); }

bool has_ended_itself(int64_t unheard_ms, int64_t deadline_ms) { return unheard_ms > deadline_ms; }

bool is_lost_far_away(int64_t unheard_ms, int64_t deadline_ms, int64_t margin_ms) { return unheard_ms >= deadline_ms + margin_ms; }

}  // namespace holdfast::redundant
