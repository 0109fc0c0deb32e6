// The processor on which a thread runs.
#pragma once

namespace orchard {

// Returns -1 if the system does not report it.
int current_processor() noexcept;
// Moves the calling thread to another processor, if its affinity mask allows one. Afterwards the mask is restored.
void leave_processor(int processor) noexcept;

} // namespace orchard
