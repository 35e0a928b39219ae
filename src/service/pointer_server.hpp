#pragma once

namespace holdfast::service {

// Serves until the other end of `control` is closed. Takes the descriptor over; no signals, no files, no environment.
void serve_pointers(int control);

}  // namespace holdfast::service
