// A process that `holdfast run --replicas` has started becomes one of the replicas of its rank.
#pragma once

namespace holdfast::frontend::posix {

// Once; nothing where it was not started so, or is no rank. Where it cannot take part it ends: alone it would write what others write.
void take_part();

}  // namespace holdfast::frontend::posix
