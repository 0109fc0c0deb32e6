// Which processor a thread runs on.
#pragma once

namespace orchard {

// -1 if the system does not report it.
int current_processor() noexcept;
// Moves the calling thread to another processor, if it may run there; later it may be moved anywhere again.
void leave_processor(int processor) noexcept;

} // namespace orchard
