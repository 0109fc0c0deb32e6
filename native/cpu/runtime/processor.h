// Which processor a thread runs on.
#pragma once

namespace orchard {

// -1 where the system does not say.
int current_processor() noexcept;
// The calling thread goes on on another processor than this one, where it may; later it may be moved anywhere again.
void leave_processor(int processor) noexcept;

} // namespace orchard
